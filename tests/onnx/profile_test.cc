// Operators whose rules look at dims, in models whose batch varies at run time: an engine with a profile gives what an
// engine for that batch alone gives, or the profile is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "importers/onnx/onnx.pb.h"
#include "pipeline/builder.h"
#include "pipeline/runner.h"
#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using onnx::pb::AttributeProto;
using onnx::pb::GraphProto;
using onnx::pb::NodeProto;
using Dims = std::vector<std::int64_t>;

NodeProto& add(GraphProto* graph, const std::string& type, const std::vector<std::string>& inputs,
               const std::string& output) {
  NodeProto& node = *graph->add_node();
  node.set_op_type(type);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

NodeProto& with(NodeProto& node, const std::string& name, std::int64_t value) {
  AttributeProto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(AttributeProto::INT);
  attr.set_i(value);
  return node;
}

NodeProto& with(NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  AttributeProto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(AttributeProto::INTS);
  for (const std::int64_t value : values) attr.add_ints(value);
  return node;
}

/// A list of integers under a name.
std::string integers(GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::pb::TensorProto& tensor = *graph->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(TN_I64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
  return name;
}

/// The dims of x from `begin` to `end`, computed.
std::string dims_of_x(GraphProto* graph, const std::string& name, std::int64_t begin, std::int64_t end) {
  with(with(add(graph, "Shape", {"x"}, name), "start", begin), "end", end);
  return name;
}

struct ModelCase {
  std::string name;
  Dims rest;  ///< dims of x behind the batch
  std::function<void(GraphProto*)> build;
};

std::vector<ModelCase> models() {
  std::vector<ModelCase> cases;
  for (const std::int64_t axis : {0, 1, 2, 3, 4}) {
    cases.push_back({"flatten" + std::to_string(axis), {3, 4, 5}, [=](GraphProto* g) {
                       with(add(g, "Flatten", {"x"}, "y"), "axis", axis);
                     }});
  }
  cases.push_back({"squeeze", {1, 4, 1}, [](GraphProto* g) {
                     add(g, "Squeeze", {"x", integers(g, "axes", {1, 3})}, "y");
                   }});
  cases.push_back({"unsqueeze", {4}, [](GraphProto* g) {
                     add(g, "Unsqueeze", {"x", integers(g, "axes", {0, 3})}, "y");
                   }});
  cases.push_back({"reshape", {4, 6}, [](GraphProto* g) {
                     add(g, "Reshape", {"x", integers(g, "shape", {0, 2, -1})}, "y");
                   }});
  cases.push_back({"reshape_computed", {4, 6}, [](GraphProto* g) {
                     with(add(g, "Concat", {dims_of_x(g, "n", 0, 1), integers(g, "rest", {3, 8})}, "shape"), "axis", 0);
                     add(g, "Reshape", {"x", "shape"}, "y");
                   }});
  cases.push_back({"slice_computed", {4}, [](GraphProto* g) {
                     const std::string half = "half";
                     add(g, "Div", {dims_of_x(g, "n", 0, 1), integers(g, "two", {2})}, half);
                     add(g, "Slice", {"x", half, dims_of_x(g, "end", 0, 1), integers(g, "axes", {0})}, "y");
                   }});
  cases.push_back({"filled", {4}, [](GraphProto* g) {
                     add(g, "ConstantOfShape", {dims_of_x(g, "dims", 0, 2)}, "zeros");
                     add(g, "Add", {"x", "zeros"}, "y");
                   }});
  cases.push_back({"expand", {1, 4}, [](GraphProto* g) {
                     with(add(g, "Concat", {dims_of_x(g, "n", 0, 1), integers(g, "rest", {3, 4})}, "dims"), "axis", 0);
                     add(g, "Expand", {"x", "dims"}, "y");
                   }});
  cases.push_back({"tile", {4}, [](GraphProto* g) {
                     with(add(g, "Concat", {integers(g, "once", {1}), dims_of_x(g, "n", 0, 1)}, "repeats"), "axis", 0);
                     add(g, "Tile", {"x", "repeats"}, "y");
                   }});
  cases.push_back({"resize", {2, 3, 3}, [](GraphProto* g) {
                     with(add(g, "Concat", {dims_of_x(g, "nc", 0, 2), integers(g, "hw", {5, 7})}, "sizes"), "axis", 0);
                     add(g, "Resize", {"x", "", "", "sizes"}, "y");
                   }});
  cases.push_back(
      {"pad_computed", {4}, [](GraphProto* g) {
         with(add(g, "Concat", {integers(g, "before", {0, 0, 0}), dims_of_x(g, "n", 0, 1)}, "pads"), "axis", 0);
         add(g, "Pad", {"x", "pads"}, "y");
       }});
  cases.push_back({"range", {4}, [](GraphProto* g) {
                     add(g, "Squeeze", {dims_of_x(g, "n", 0, 1)}, "limit");
                     for (const auto& [name, value] : {std::pair{"zero", 0}, {"one", 1}}) {
                       onnx::pb::TensorProto& tensor = *g->add_initializer();
                       tensor.set_name(name);
                       tensor.set_data_type(TN_I64);
                       tensor.add_int64_data(value);
                     }
                     add(g, "Range", {"zero", "limit", "one"}, "places");
                     with(add(g, "Cast", {"places"}, "numbers"), "to", TN_F32);
                     add(g, "Unsqueeze", {"numbers", integers(g, "axes", {1})}, "column");
                     add(g, "Add", {"x", "column"}, "y");
                   }});
  cases.push_back({"global_average_pool_line", {2, 8}, [](GraphProto* g) { add(g, "GlobalAveragePool", {"x"}, "y"); }});
  cases.push_back({"global_max_pool_volume", {2, 3, 2, 2}, [](GraphProto* g) { add(g, "GlobalMaxPool", {"x"}, "y"); }});
  cases.push_back({"max_pool_line", {2, 8}, [](GraphProto* g) {
                     with(with(add(g, "MaxPool", {"x"}, "y"), "kernel_shape", Dims{2}), "strides", Dims{2});
                   }});
  cases.push_back({"lp_pool_volume", {2, 4, 4, 4}, [](GraphProto* g) {
                     with(with(add(g, "LpPool", {"x"}, "y"), "kernel_shape", Dims{2, 2, 2}), "strides", Dims{2, 2, 2});
                   }});
  cases.push_back({"conv_line", {2, 8}, [](GraphProto* g) {
                     onnx::pb::TensorProto& w = *g->add_initializer();
                     w.set_name("w");
                     w.set_data_type(TN_F32);
                     for (const std::int64_t size : {3, 2, 3}) w.add_dims(size);
                     for (int i = 0; i < 18; ++i) w.add_float_data(static_cast<float>(i % 5) - 2);
                     add(g, "Conv", {"x", "w"}, "y");
                   }});
  cases.push_back(
      {"depth_to_space", {8, 2, 3}, [](GraphProto* g) { with(add(g, "DepthToSpace", {"x"}, "y"), "blocksize", 2); }});
  cases.push_back({"instance_norm", {2, 4, 4}, [](GraphProto* g) {
                     for (const char* name : {"scale", "bias"}) {
                       onnx::pb::TensorProto& tensor = *g->add_initializer();
                       tensor.set_name(name);
                       tensor.set_data_type(TN_F32);
                       tensor.add_dims(2);
                       for (const float value : {1.5f, -0.5f}) tensor.add_float_data(value);
                     }
                     add(g, "InstanceNormalization", {"x", "scale", "bias"}, "y");
                   }});
  cases.push_back({"matmul_vector", {3, 4}, [](GraphProto* g) {
                     onnx::pb::TensorProto& v = *g->add_initializer();
                     v.set_name("v");
                     v.set_data_type(TN_F32);
                     v.add_dims(4);
                     for (const float value : {1.0f, -2.0f, 3.0f, 0.5f}) v.add_float_data(value);
                     add(g, "MatMul", {"x", "v"}, "y");
                   }});
  return cases;
}

class OnnxProfile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(library_.discover().ok()); }

  pipeline::BuildRequest request(const ModelCase& model, std::int64_t batch) {
    onnx::pb::ModelProto proto;
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(17);
    GraphProto& graph = *proto.mutable_graph();
    graph.set_name(model.name);
    onnx::pb::ValueInfoProto& x = *graph.add_input();
    x.set_name("x");
    auto& type = *x.mutable_type()->mutable_tensor_type();
    type.set_elem_type(TN_F32);
    type.mutable_shape()->add_dim()->set_dim_param("n");
    for (const std::int64_t size : model.rest) type.mutable_shape()->add_dim()->set_dim_value(size);
    graph.add_output()->set_name("y");
    model.build(&graph);
    pipeline::BuildRequest result;
    result.model = dir_.path() / (model.name + ".onnx");
    write_text(result.model, proto.SerializeAsString());
    result.device = "cpu";
    result.shapes["x"] = dims(model, batch);
    result.config = {{"on_fallback", "allow"}, {"time_budget", "0.05"}};
    return result;
  }
  static Dims dims(const ModelCase& model, std::int64_t batch) {
    Dims result = {batch};
    result.insert(result.end(), model.rest.begin(), model.rest.end());
    return result;
  }
  pipeline::Runner runner(const pipeline::BuildRequest& request) {
    const Result<BuiltEngine> built = pipeline::build_engine(library_, request, nullptr);
    if (!built.ok()) throw std::runtime_error(built.status().message());
    const Engine engine = Runtime(library_, "cpu").create(built->data(), built->size()).value();
    return pipeline::Runner::create(engine).value();
  }
  static pipeline::NpyArray run(pipeline::Runner* runner, const Dims& x_dims) {
    std::size_t count = 1;
    for (const std::int64_t size : x_dims) count *= static_cast<std::size_t>(size);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7919) % 101) / 10 - 5;
    pipeline::NpyArray x;
    x.type = pipeline::NpyType::kF4;
    x.dims = x_dims;
    x.bytes.resize(count * 4);
    std::memcpy(x.bytes.data(), values.data(), x.bytes.size());
    const auto result = runner->run_tensors({{"x", x}});
    if (!result.ok()) throw std::runtime_error(result.status().message());
    return runner->outputs().value().at("y");
  }

  TempDir dir_;
  Library library_ = Library::create().value();
};

// The optimum is a batch of 1, where one dim is easily taken for another.
TEST_F(OnnxProfile, EveryBatchGivesWhatAnEngineForItGives) {
  for (const ModelCase& model : models()) {
    SCOPED_TRACE(model.name);
    try {
      pipeline::BuildRequest varying = request(model, 1);
      varying.profiles["x"] = {dims(model, 1), dims(model, 6)};
      pipeline::Runner any = runner(varying);
      for (const std::int64_t batch : {1, 2, 5}) {
        pipeline::Runner fixed = runner(request(model, batch));
        const pipeline::NpyArray expected = run(&fixed, dims(model, batch)), found = run(&any, dims(model, batch));
        ASSERT_EQ(found.dims, expected.dims) << "batch " << batch;
        const auto* a = reinterpret_cast<const float*>(expected.bytes.data());
        const auto* b = reinterpret_cast<const float*>(found.bytes.data());
        for (std::size_t i = 0; i < expected.bytes.size() / 4; ++i) {
          ASSERT_NEAR(b[i], a[i], 1e-5 * std::max(1.0f, std::abs(a[i]))) << "batch " << batch << ", element " << i;
        }
      }
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// What a rule makes of the dims while the model is read would be wrong for others.
TEST_F(OnnxProfile, DimsThatAreBakedInRefuseIt) {
  const ModelCase split = {"split", {3}, [](GraphProto* g) { add(g, "Split", {"x"}, "y").add_output("second"); }};
  const ModelCase mean = {
      "mean_variance", {3, 4, 4}, [](GraphProto* g) { add(g, "MeanVarianceNormalization", {"x"}, "y"); }};
  for (const ModelCase& model : {split, mean}) {
    SCOPED_TRACE(model.name);
    pipeline::BuildRequest varying = request(model, 2);
    varying.profiles["x"] = {dims(model, 2), dims(model, 6)};
    const Status status = pipeline::load_network(library_, varying).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_NE(status.message().find("cannot vary at run time"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("x=6x3"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace tenon::e2e
