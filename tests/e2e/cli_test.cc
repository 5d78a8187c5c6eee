// The program `tenon` as scripts meet it: exit statuses, what is on stdout, which files are left, damaged input.
#include <map>

#include "core/tuner/code_store.h"
#include "pipeline/image.h"
#include "pipeline/npy.h"
#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

constexpr char kCfg[] =
    "[net]\nwidth=8\nheight=8\nchannels=3\n"
    "[convolutional]\nfilters=4\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
    "[avgpool]\n[softmax]\n";

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    cfg_ = dir_.write("net.cfg", kCfg);
    picture_ = dir_.path() / "red.png";
    ASSERT_TRUE(pipeline::write_image(picture_, pipeline::make_image(8, 8, 200, 10, 10)).ok());
    engine_ = at("net.tenon");
    const Outcome built = tenon(with_model({"build"}, {"-o", engine_, "--timing-cache", at("cache.yaml")}));
    ASSERT_EQ(built.status, 0) << built.err;
  }

  std::string at(const std::string& name) const { return dir_.path() / name; }

  /// command, the model with made-up weights, further arguments
  std::vector<std::string> with_model(std::vector<std::string> command, const std::vector<std::string>& more) const {
    for (const std::string& part : {cfg_, std::string("--import-option"), std::string("random_weights=1")}) {
      command.push_back(part);
    }
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  /// Fails with this status and a message that holds `part`, prints nothing on stdout, and leaves no file behind.
  void expect_failure(int status, const std::string& part, const std::vector<std::string>& command) {
    SCOPED_TRACE(command[0] + " ... " + command.back());
    const std::vector<std::string> before = listing(dir_.path());
    const Outcome outcome = tenon(command);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in " << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(listing(dir_.path()), before) << "files were left behind";
  }

  TempDir dir_;
  std::string cfg_, picture_, engine_;
};

// --shape NAME=MIN,OPT,MAX; the dims of a run are those of its arrays.
TEST_F(Program, ShapesMayVaryAtRunTime) {
  const std::string engine = at("varying.tenon");
  const Outcome built = tenon(with_model(
      {"build"}, {"-o", engine, "--timing-cache", at("cache.yaml"), "--shape", "data=1x3x8x8,2x3x8x8,4x3x8x8"}));
  ASSERT_EQ(built.status, 0) << built.err;
  const Outcome inspected = tenon({"inspect", engine});
  EXPECT_NE(inspected.out.find("input data [2,3,8,8] f32, from [1,3,8,8] to [4,3,8,8]"), std::string::npos)
      << inspected.out;
  pipeline::NpyArray array;
  array.type = pipeline::NpyType::kF4;
  for (const std::int64_t batch : {3, 5}) {
    array.dims = {batch, 3, 8, 8};
    array.bytes.assign(static_cast<std::size_t>(batch) * 3 * 8 * 8 * 4, 0);
    ASSERT_TRUE(pipeline::write_npy(at("x" + std::to_string(batch) + ".npy"), array).ok());
  }
  const Outcome run =
      tenon({"run", engine, "--tensor", "data=" + at("x3.npy"), "--dump-tensors", at("out"), "--json", at("run.json")});
  ASSERT_EQ(run.status, 0) << run.err;
  const json outputs = json::parse(read_text(at("run.json")))["results"][0]["outputs"];
  EXPECT_EQ(outputs[0]["dims"][0], 3) << outputs.dump();
  expect_failure(1, "expected dims from [1,3,8,8] to [4,3,8,8], found [5,3,8,8]",
                 {"run", engine, "--tensor", "data=" + at("x5.npy")});
  const Outcome bench = tenon({"bench", engine, "--iterations", "3", "--shape", "data=4x3x8x8", "--json", "-"});
  ASSERT_EQ(bench.status, 0) << bench.err;
  EXPECT_EQ(json::parse(bench.out)["batch"], 4) << bench.out;
  expect_failure(2, "expected one shape, or three: MIN,OPT,MAX",
                 with_model({"build"}, {"-o", at("x.tenon"), "--shape", "data=1x3x8x8,2x3x8x8"}));
  expect_failure(1, "min <= opt <= max",
                 with_model({"build"}, {"-o", at("x.tenon"), "--shape", "data=3x3x8x8,2x3x8x8,4x3x8x8"}));
}

TEST_F(Program, WrongUsageIsStatusTwo) {
  expect_failure(2, "unknown command \"no-such-command\"; expected one of build, run", {"no-such-command"});
  expect_failure(2, "unknown command \"ge\"; expected one of list, get", {"cache", "ge", at("cache.yaml")});
  expect_failure(2, "--threshold", {"run", engine_, "--input", picture_, "--threshold", "nan"});
  expect_failure(2, "--no-such-option", with_model({"build"}, {"-o", at("x.tenon"), "--no-such-option"}));
  expect_failure(2, "output", with_model({"build"}, {}));
  expect_failure(2, "--input", {"run", engine_});
  expect_failure(2, "not both", {"run", engine_, "--input", picture_, "--tensor", "data=" + at("x.npy")});
  expect_failure(2, "data", {"run", engine_, "--tensor", "data"});
  expect_failure(2, "--frozen-cache", with_model({"build"}, {"-o", at("x.tenon"), "--frozen-cache"}));
  expect_failure(2, "--layer", {"cache", "get", at("cache.yaml")});
  expect_failure(2, "--mark-output", {"run", engine_, "--input", picture_, "--mark-output", "layer0"});
  expect_failure(2, "engine already", {"build", engine_, "-o", at("x.tenon")});
  expect_failure(2, "--output", {"run", engine_, "--input", picture_, "--output", at("x.gif")});
}

TEST_F(Program, WorkThatFailsIsStatusOne) {
  expect_failure(1, "no such file", {"run", at("absent.tenon"), "--input", picture_});
  expect_failure(1, "absent.png", {"run", engine_, "--input", at("absent.png"), "--json", at("x.json")});
  expect_failure(1, "layer99", with_model({"build"}, {"-o", at("x.tenon"), "--mark-output", "layer99"}));
  expect_failure(1, "no such timing cache", {"cache", "list", at("absent.yaml")});
  expect_failure(1, "layer99", with_model({"explain"}, {"--node", "layer99"}));
  // Where nothing can be written, that is said before the work.
  const std::string lost = at("no/such/x");
  expect_failure(1, lost, with_model({"build"}, {"-o", lost, "--timing-cache", at("new.yaml")}));
  expect_failure(1, lost,
                 with_model({"build"}, {"-o", at("x.tenon"), "--report", lost, "--timing-cache", at("new.yaml")}));
  expect_failure(1, lost, with_model({"build"}, {"-o", at("x.tenon"), "--timing-cache", lost}));
  expect_failure(1, lost, {"run", engine_, "--input", picture_, "--output", lost + ".png"});
  expect_failure(1, lost, {"bench", engine_, "--json", lost});
  expect_failure(1, "is not a timing cache", with_model({"build"}, {"-o", at("x.tenon"), "--timing-cache", picture_}));
  // A rule that matches nowhere is found after the engine was made; the engine is not left.
  expect_failure(
      1, "no.such.rule",
      with_model({"build"}, {"-o", at("x.tenon"), "--report", at("x.json"), "--force-rule", "no.such.rule"}));
}

TEST_F(Program, NpyInputThatDoesNotFit) {
  const std::vector<float> values(12);
  ASSERT_TRUE(pipeline::write_npy(at("small.npy"), pipeline::npy_from_floats({1, 3, 2, 2}, values)).ok());
  expect_failure(1, "[1,3,8,8]", {"run", engine_, "--tensor", "data=" + at("small.npy"), "--dump-tensors", at("dump")});
  expect_failure(1, "[1,3,8,8]", {"run", engine_, "--input", at("small.npy")});
  expect_failure(2, "data", {"run", engine_, "--tensor", "other=" + at("small.npy")});
  expect_failure(2, "small.npy", {"run", engine_, "--input", at("small.npy"), "--output", at("x.png")});
}

TEST_F(Program, AnArrayAsInputIsTheTensorOfTheOnlyInput) {
  std::vector<float> values(3 * 8 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 17;
  ASSERT_TRUE(pipeline::write_npy(at("x.npy"), pipeline::npy_from_floats({1, 3, 8, 8}, values)).ok());
  std::map<std::string, std::string> dumped;
  for (const std::string& how : {std::string("--input"), std::string("--tensor")}) {
    const std::string given = how == "--input" ? at("x.npy") : "data=" + at("x.npy");
    const Outcome outcome = tenon({"run", engine_, how, given, "--dump-tensors", at(how)});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    for (const auto& entry : fs::directory_iterator(at(how))) {
      dumped[how] += entry.path().filename().string() + read_text(entry.path());
    }
  }
  EXPECT_FALSE(dumped["--input"].empty());
  EXPECT_EQ(dumped["--input"], dumped["--tensor"]);
}

TEST_F(Program, DamagedFilesAreErrorsAndNotCrashes) {
  const std::string engine = read_text(engine_), cache = read_text(at("cache.yaml")), png = read_text(picture_);
  const auto damaged = [](const std::string& good) {
    std::vector<std::string> all = {"", good.substr(0, 7), good.substr(0, good.size() / 2),
                                    good.substr(0, good.size() - 1)};
    all.push_back(good);
    all.back()[good.size() / 3] = static_cast<char>(all.back()[good.size() / 3] ^ 0x40);
    return all;
  };
  for (const std::string& bytes : damaged(engine)) {
    const std::string bad = dir_.write("bad.tenon", bytes);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"run", bad, "--input", picture_}, {"inspect", bad}, {"bench", bad}}) {
      if (command[0] == "inspect" && bytes.size() == engine.size()) continue;  // may be in a part that it does not read
      if (bytes.size() == engine.size() && read_text(bad) == engine) continue;
      expect_failure(1, "bad.tenon", command);
    }
  }
  expect_failure(1, "", {"run", picture_, "--input", picture_});
  expect_failure(1, "folder", {"run", dir_.path(), "--input", picture_});
  for (const std::string& bytes : damaged(png)) {
    if (bytes.size() >= png.size() - 1) continue;  // decoders do not check the end of a PNG file
    expect_failure(1, "bad.png", {"run", engine_, "--input", dir_.write("bad.png", bytes), "--json", "-"});
  }
  // A damaged timing cache costs measurements, and with --frozen-cache it is an error.
  for (const std::string& bytes : damaged(cache)) {
    const std::string bad = dir_.write("bad.yaml", bytes);
    const Outcome built = tenon(with_model({"build"}, {"-o", at("damaged.tenon"), "--timing-cache", bad}));
    EXPECT_EQ(built.status, 0) << built.err;
    EXPECT_EQ(tenon({"cache", "list", bad}).status, 0);
    fs::remove(at("damaged.tenon"));
  }
  dir_.write("bad.yaml", cache.substr(0, cache.size() / 2));
  expect_failure(1, "bad.yaml",
                 with_model({"build"}, {"-o", at("x.tenon"), "--timing-cache", at("bad.yaml"), "--frozen-cache"}));
}

TEST_F(Program, GraphLinesAreListedMergedAndErased) {
  const std::string cache = at("cache.yaml"), merged = at("merged.yaml");
  const json graphs = parse_json(tenon({"cache", "list", cache, "--json", "-"}).out)["graphs"];
  ASSERT_EQ(graphs.size(), 1u);
  const std::string key = graphs[0]["key"];
  EXPECT_NE(tenon({"cache", "list", cache}).out.find(key), std::string::npos);
  EXPECT_NE(tenon({"inspect", cache}).out.find(key), std::string::npos);
  EXPECT_EQ(parse_json(tenon({"cache", "get", cache, "--key", key, "--json", "-"}).out), graphs[0]);
  EXPECT_NE(tenon({"cache", "get", cache, "--key", key}).out.find("graph " + key), std::string::npos);
  ASSERT_EQ(tenon({"cache", "merge", merged, cache}).status, 0);
  EXPECT_EQ(parse_json(tenon({"cache", "list", merged, "--json", "-"}).out)["graphs"], graphs);
  ASSERT_EQ(tenon({"cache", "erase", merged, "--key", key}).status, 0);
  EXPECT_TRUE(parse_json(tenon({"cache", "list", merged, "--json", "-"}).out)["graphs"].empty());
  expect_failure(1, "no entry", {"cache", "erase", merged, "--key", key});
}

TEST_F(Program, CompiledCodeIsListedAndMerged) {
  const std::string cache = at("cache.yaml"), merged = at("merged.yaml");
  EXPECT_EQ(tenon({"cache", "list", cache}).out.find("compiled code"), std::string::npos);
  CodeStore store;
  store.put("source", "code");
  ASSERT_TRUE(store.save(cache + ".code", null_logger()).ok());
  ASSERT_EQ(tenon({"cache", "merge", merged, cache}).status, 0);
  EXPECT_EQ(read_text(merged + ".code"), read_text(cache + ".code"));
  const json code = parse_json(tenon({"cache", "list", merged, "--json", "-"}).out)["code"];
  EXPECT_EQ(code, (json{{"pieces", 1}, {"bytes", fs::file_size(merged + ".code") - 16}}));
  EXPECT_NE(tenon({"cache", "list", merged}).out.find(merged + ".code: 1 pieces, 34 bytes"), std::string::npos);
  // A build with damaged code is a build, and a frozen one writes nothing.
  for (const bool frozen : {true, false}) {
    const std::string bad = dir_.write("cache.yaml.code", read_text(merged + ".code").substr(0, 30));
    std::vector<std::string> command = with_model({"build"}, {"-o", at("x.tenon"), "--timing-cache", cache});
    if (frozen) command.push_back("--frozen-cache");
    const Outcome built = tenon(command);
    EXPECT_EQ(built.status, 0) << built.err;
    EXPECT_NE(built.err.find("cache.yaml.code, byte 16"), std::string::npos) << built.err;
    EXPECT_EQ(read_text(bad).size(), 30u);
  }
}

// The lists of a graph line decide nothing, so an edit that breaks them fails no build, not even a frozen one.
TEST_F(Program, AGraphLineEditedWronglyFailsNoBuild) {
  const std::string good = read_text(at("cache.yaml"));
  const std::size_t lists = good.find("regions: []");
  ASSERT_NE(lists, std::string::npos);
  const std::string begin = good.substr(0, lists), end = good.substr(good.find('\n', lists));
  ASSERT_EQ(tenon(with_model({"build"}, {"-o", at("a.tenon"), "--timing-cache", at("cache.yaml")})).status, 0);
  for (const char* fields :
       {"layout: [{value: data, format: nonsense}]}", "layout: 7, rerank: [{key: 0x1}]}", "x: [a]}"}) {
    const std::string cache = dir_.write("edited.yaml", begin + fields + end);
    const Outcome frozen =
        tenon(with_model({"build"}, {"-o", at("b.tenon"), "--timing-cache", cache, "--frozen-cache"}));
    ASSERT_EQ(frozen.status, 0) << frozen.err;
    EXPECT_TRUE(read_text(at("a.tenon")) == read_text(at("b.tenon")));
    ASSERT_EQ(tenon(with_model({"build"}, {"-o", at("b.tenon"), "--timing-cache", cache})).status, 0);
    EXPECT_TRUE(read_text(at("a.tenon")) == read_text(at("b.tenon")));
  }
}

TEST_F(Program, JsonOnStdoutIsAlone) {
  const std::vector<std::vector<std::string>> commands = {
      {"run", engine_, "--input", picture_, "--json", "-"},
      {"bench", engine_, "--iterations", "3", "--profile", "--json", "-"},
      {"inspect", engine_, "--format", "json"},
      {"inspect", at("cache.yaml"), "--format", "json"},
      {"cache", "list", at("cache.yaml"), "--json", "-"},
      {"cache", "diff", at("cache.yaml"), at("cache.yaml"), "--json", "-"},
      {"plugin", "list", "--json", "-"},
      {"rules", "--json", "-"},
      with_model({"explain"}, {"--node", "layer0", "--timing-cache", at("cache.yaml"), "--json", "-"}),
      with_model({"compare"}, {"--timing-cache", at("cache.yaml"), "--json", "-"}),
      with_model({"build"}, {"-o", at("y.tenon"), "--timing-cache", at("cache.yaml"), "--report", "-", "--verbose"}),
  };
  for (const auto& command : commands) {
    SCOPED_TRACE(command[0] + " " + command[1]);
    const Outcome outcome = tenon(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_FALSE(parse_json(outcome.out).is_null());
  }
}

// What the list names is what --disable-rule takes.
TEST_F(Program, RulesAreListedAndSwitchedOff) {
  const Outcome listed = tenon({"rules", "--json", "-"});
  ASSERT_EQ(listed.status, 0) << listed.err;
  std::map<std::string, json> rules;
  const json all = parse_json(listed.out);
  for (const json& rule : all["rules"]) rules[rule["id"]] = rule;
  ASSERT_EQ(rules.count("tenon.core.epilogue/1"), 1u);
  EXPECT_EQ(rules["tenon.core.epilogue/1"]["plugin"], "");
  ASSERT_EQ(rules.count("tenon.fold_batch_norm/1"), 1u);
  EXPECT_EQ(rules["tenon.fold_batch_norm/1"]["plugin"], "tenon.batch_norm");
  EXPECT_EQ(rules["tenon.fold_batch_norm/1"]["mode"], "always");
  EXPECT_NE(tenon({"rules"}).out.find("tenon.fold_batch_norm/1"), std::string::npos);

  std::vector<std::string> options = {"-o", at("x.tenon"), "--report", at("x.json"), "--timing-cache", at("c.yaml")};
  ASSERT_EQ(tenon(with_model({"build"}, options)).status, 0);
  const json report = parse_json(read_text(at("x.json")));
  EXPECT_FALSE(report["rules"].empty());
  for (const json& rule : report["rules"]) options.insert(options.end(), {"--disable-rule", rule["id"]});
  ASSERT_EQ(tenon(with_model({"build"}, options)).status, 0);
  EXPECT_EQ(parse_json(read_text(at("x.json")))["rules"], json::array());
}

TEST_F(Program, RunTellsWhatTheContractNames) {
  const Outcome ran =
      tenon(with_model({"run"}, {"--timing-cache", at("cache.yaml"), "--input", picture_, "--mark-output", "layer0",
                                 "--dump-tensors", at("dump/deep"), "--json", "-"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json report = parse_json(ran.out);
  for (const char* part : {"preprocess", "infer", "postprocess"})
    EXPECT_TRUE(report["timings_ms"][part].is_number()) << part;
  EXPECT_TRUE(report["device"].is_string());
  ASSERT_EQ(report["results"].size(), 1u);
  const json& result = report["results"][0];
  EXPECT_EQ(result["input"], picture_);
  EXPECT_TRUE(result["detections"].is_array());
  std::map<std::string, json> outputs;
  for (const json& output : result["outputs"]) {
    EXPECT_EQ(output["dtype"], "float32");
    outputs[output["name"]] = output["dims"];
  }
  EXPECT_EQ(outputs["layer0"], json({1, 4, 8, 8}));
  ASSERT_TRUE(outputs.count("layer2"));
  ASSERT_FALSE(result["classes"].empty());
  for (const char* field : {"class", "class_id", "score"}) EXPECT_TRUE(result["classes"][0].contains(field)) << field;
  EXPECT_EQ(listing(at("dump/deep")), (std::vector<std::string>{"layer0.npy", "layer2.npy"}));
  const auto dumped = pipeline::read_npy(at("dump/deep/layer0.npy"));
  ASSERT_TRUE(dumped.ok());
  EXPECT_EQ(json(dumped->dims), outputs["layer0"]);
}

class Pipeline : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("");
    ASSERT_TRUE(fs::exists(engine_));
    fs::remove(engine_);
  }

  void write(const std::string& more) {
    dir_.write("net.yaml",
               "tenon: 1\nmodel: {format: darknet, cfg: net.cfg, weights: net.weights}\n"
               "build: {timing_cache: cache.yaml, engine: kept.tenon}\npreprocess: {resize: stretch}\n" +
                   more);
    // Header 0.2.0 with a 64-bit counter, then 4 biases and 4 * 3 * 3 * 3 weights.
    std::string weights(20 + 4 * (4 + 108), '\0');
    weights[4] = 2;
    for (std::size_t i = 20; i < weights.size(); i += 4) weights.replace(i, 4, std::string("\0\0\0\x3e", 4));  // 0.125
    dir_.write("net.weights", weights);
  }

  std::string run(int status = 0) {
    const Outcome ran = tenon({"run", at("net.yaml"), "--input", picture_, "--json", "-"});
    EXPECT_EQ(ran.status, status) << ran.err;
    return ran.err;
  }
};

TEST_F(Pipeline, EngineIsKeptAndRebuiltOnlyForAStatedReason) {
  EXPECT_NE(run().find("there is none yet"), std::string::npos);
  const auto kept = fs::last_write_time(at("kept.tenon"));
  EXPECT_EQ(run().find("building"), std::string::npos);
  EXPECT_EQ(fs::last_write_time(at("kept.tenon")), kept);
  dir_.write("net.cfg", std::string(kCfg) + "\n# a remark\n");
  EXPECT_NE(run().find("the model file changed"), std::string::npos);
  EXPECT_EQ(run().find("building"), std::string::npos);
  std::string weights = read_text(at("net.weights"));
  weights[23] = 0x3f;
  dir_.write("net.weights", weights);
  EXPECT_NE(run().find("the weights file changed"), std::string::npos);
  dir_.write("net.yaml", read_text(at("net.yaml")) + "precision: tf32\n");
  EXPECT_NE(run().find("options changed"), std::string::npos);
  dir_.write("kept.tenon", read_text(at("kept.tenon")).substr(0, 5000));
  EXPECT_NE(run().find("building engine"), std::string::npos) << "a damaged engine is replaced, and the reason said";
  EXPECT_EQ(run().find("building"), std::string::npos);
}

TEST_F(Pipeline, MistakesHaveLineAndColumn) {
  write("preprocces: {}\n");
  const Outcome outcome = tenon({"validate", at("net.yaml"), "--json", "-"});
  EXPECT_EQ(outcome.status, 1);
  const json errors = parse_json(outcome.out)["errors"];
  ASSERT_EQ(errors.size(), 1u) << errors;
  EXPECT_EQ(errors[0]["line"], 5);
  EXPECT_EQ(errors[0]["column"], 1);
  EXPECT_NE(outcome.err.find("preprocess"), std::string::npos) << outcome.err;
  expect_failure(1, "net.yaml:5:1", {"run", at("net.yaml"), "--input", picture_});
  for (const char* text : {"", "tenon: [", "\xff\xfe", "tenon: 1\n"}) {
    dir_.write("net.yaml", text);
    expect_failure(1, "net.yaml", {"run", at("net.yaml"), "--input", picture_});
  }
}

}  // namespace
}  // namespace tenon::e2e
