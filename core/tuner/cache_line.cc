#include "core/tuner/cache_line.h"

#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace tenon {
namespace {

constexpr const char* kHeaderWord = "tenon_timing_cache";
constexpr std::size_t kMaxTacticBlob = 256;  // TnTactic

const char* kind_word(CacheMeasurement::Kind kind) {
  switch (kind) {
    case CacheMeasurement::Kind::kMeasured:
      return "measured";
    case CacheMeasurement::Kind::kRejected:
      return "rejected";
    case CacheMeasurement::Kind::kQuarantined:
      return "quarantined";
  }
  return "measured";
}

/// The first field names the kind; a line whose fields another program sorted is known by the field that holds the key.
std::string kind_of(const std::vector<FlowField>& fields) {
  if (fields.front().name == kHeaderWord) return kHeaderWord;
  for (const FlowField& field : fields) {
    for (const char* kind : {"choice", "measured", "rejected", "quarantined", "graph"}) {
      if (field.name == kind && (&field == &fields.front() || parse_hash128(field.value.value_or("")))) return kind;
    }
  }
  return fields.front().name;
}

Result<CacheLine> read_choice(FlowReader* reader, std::vector<std::string>* unknown) {
  CacheChoice choice;
  reader->take("choice", &choice.key);
  reader->take("layer", &choice.layer);
  reader->take("op", &choice.op);
  reader->take("device", &choice.device);
  reader->take("combo", &choice.combo);
  reader->take("kernel", &choice.kernel);
  reader->take("tactic", &choice.tactic);
  reader->take("params", &choice.params);
  reader->take("ms", &choice.ms);
  reader->take("pinned", &choice.pinned);
  reader->take("partial", &choice.partial);
  if (choice.tactic == ~0ull) reader->fail("'tactic' is 0xffffffffffffffff, which means \"invalid\"");
  TENON_RETURN_IF_ERROR(reader->finish(unknown));
  return CacheLine(choice);
}

Result<CacheLine> read_measurement(CacheMeasurement::Kind kind, FlowReader* reader, std::vector<std::string>* unknown) {
  CacheMeasurement measurement;
  measurement.kind = kind;
  reader->take(kind_word(kind), &measurement.key);
  read_candidate(reader, &measurement);
  if (kind == CacheMeasurement::Kind::kMeasured) {
    reader->require("ms");
    reader->take("ms", &measurement.ms);
    if (!std::isfinite(measurement.ms) || measurement.ms < 0) reader->fail("'ms' is no time");
    std::int64_t launches = 1;
    reader->take_number("launches", &launches);
    if (launches < 0 || launches > std::numeric_limits<int>::max()) reader->fail("'launches' is out of range");
    measurement.launches = static_cast<int>(launches);
  } else {
    reader->take("reason", &measurement.reason);
  }
  TENON_RETURN_IF_ERROR(reader->finish(unknown));
  return CacheLine(measurement);
}

/// An entry of a list that is not as this version writes it costs itself, not the line.
Result<CacheLine> read_graph(FlowReader* reader, std::vector<std::string>* unknown) {
  CacheGraph graph;
  reader->take("graph", &graph.key);
  reader->take("device", &graph.device);
  const auto complete = [&](const FlowReader& item, const std::string& list) {
    const Status status = item.finish(unknown);
    if (!status.ok() && unknown != nullptr) unknown->push_back("in '" + list + "': " + status.message());
    return status.ok();
  };
  for (FlowReader& item : reader->list("regions")) {
    CacheGraph::Region region;
    item.require("rule");
    item.take("rule", &region.rule);
    item.require("layer");
    item.take("layer", &region.layer);
    item.require("taken");
    item.take("taken", &region.taken);
    item.take("ms", &region.ms);
    item.take("rival_ms", &region.rival_ms);
    if (complete(item, "regions")) graph.regions.push_back(std::move(region));
  }
  for (FlowReader& item : reader->list("layout")) {
    CacheGraph::Format format;
    item.require("value");
    item.take("value", &format.value);
    item.require("format");
    item.take("format", &format.format);
    if (complete(item, "layout")) graph.layout.push_back(std::move(format));
  }
  for (FlowReader& item : reader->list("streams")) {
    CacheGraph::Stream stream;
    item.require("layer");
    item.take("layer", &stream.layer);
    item.take_number("step", &stream.step);
    item.require("stream");
    item.take_number("stream", &stream.stream);
    if (complete(item, "streams")) graph.streams.push_back(std::move(stream));
  }
  for (FlowReader& item : reader->list("rerank")) {
    CacheGraph::Rerank rerank;
    item.take("key", &rerank.key);
    item.take("layer", &rerank.layer);
    item.take("tactic", &rerank.tactic);
    item.take("ms", &rerank.ms);
    item.take("rival", &rerank.rival);
    item.take("rival_ms", &rerank.rival_ms);
    if (complete(item, "rerank")) graph.rerank.push_back(std::move(rerank));
  }
  TENON_RETURN_IF_ERROR(reader->finish(unknown));
  return CacheLine(graph);
}

}  // namespace

void write_candidate(const CacheMeasurement& measurement, FlowWriter* writer) {
  writer->add_quoted("combo", measurement.combo).add_name("kernel", measurement.kernel);
  writer->add_number("revision", measurement.revision);
  if (!measurement.build.empty()) writer->add_quoted("build", measurement.build);
  writer->add("tactic", measurement.tactic).add_quoted("params", measurement.params);
  if (!measurement.blob.empty()) writer->add_quoted("blob", to_hex(measurement.blob));
  if (measurement.workspace != 0) {
    writer->add_number("workspace", static_cast<std::int64_t>(measurement.workspace));
  }
}

void read_candidate(FlowReader* reader, CacheMeasurement* measurement) {
  std::int64_t revision = 0;
  reader->require("combo");
  reader->take("combo", &measurement->combo);
  reader->require("kernel");
  reader->take("kernel", &measurement->kernel);
  reader->take_number("revision", &revision);
  reader->take("build", &measurement->build);
  reader->take("tactic", &measurement->tactic);
  reader->take("params", &measurement->params);
  std::string blob;
  reader->take("blob", &blob);
  const auto bytes = parse_hex(blob);
  if (!bytes || bytes->size() > kMaxTacticBlob) reader->fail("'blob' is not at most 256 bytes of two hex digits each");
  measurement->blob = bytes.value_or(std::vector<std::uint8_t>());
  std::int64_t workspace = 0;
  reader->take_number("workspace", &workspace);
  if (workspace < 0) reader->fail("'workspace' is below 0");
  measurement->workspace = static_cast<std::uint64_t>(workspace);
  if (revision < 0 || revision > std::numeric_limits<std::uint32_t>::max()) {
    reader->fail("'revision' is out of range");
  }
  measurement->revision = static_cast<std::uint32_t>(revision);
}

Result<CacheLine> parse_cache_line(std::string_view line, std::vector<std::string>* unknown) {
  TENON_ASSIGN(const std::vector<FlowField> fields, parse_flow_line(line));
  FlowReader reader(fields);
  const std::string kind = kind_of(fields);
  if (kind == kHeaderWord) {
    CacheHeader header;
    reader.take_number(kHeaderWord, &header.version);
    TENON_RETURN_IF_ERROR(reader.finish(unknown));
    return CacheLine(header);
  }
  if (kind == "choice") return read_choice(&reader, unknown);
  if (kind == "graph") return read_graph(&reader, unknown);
  for (const auto measured :
       {CacheMeasurement::Kind::kMeasured, CacheMeasurement::Kind::kRejected, CacheMeasurement::Kind::kQuarantined}) {
    if (kind == kind_word(measured)) return read_measurement(measured, &reader, unknown);
  }
  return CacheLine(OtherLine{std::string(line)});
}

std::string header_line() { return FlowWriter().add_number(kHeaderWord, kCacheFormatVersion).line(); }

std::string cache_line(const CacheChoice& choice) {
  FlowWriter writer;
  writer.add("choice", choice.key).add_name("layer", choice.layer).add_name("op", choice.op);
  if (!choice.device.empty()) writer.add_quoted("device", choice.device);
  writer.add_quoted("combo", choice.combo).add_name("kernel", choice.kernel).add("tactic", choice.tactic);
  writer.add_quoted("params", choice.params).add("ms", choice.ms).add_bool("pinned", choice.pinned);
  if (choice.partial) writer.add_bool("partial", true);
  return writer.line();
}

std::string cache_line(const CacheMeasurement& measurement) {
  FlowWriter writer;
  writer.add(kind_word(measurement.kind), measurement.key);
  write_candidate(measurement, &writer);
  if (measurement.kind == CacheMeasurement::Kind::kMeasured) {
    writer.add("ms", measurement.ms);
    if (measurement.launches != 1) writer.add_number("launches", measurement.launches);
  } else {
    writer.add_quoted("reason", measurement.reason);
  }
  return writer.line();
}

std::string cache_line(const CacheGraph& graph) {
  std::vector<FlowWriter> regions, layout, streams, rerank;
  for (const CacheGraph::Region& entry : graph.regions) {
    regions.push_back(FlowWriter()
                          .add_name("rule", entry.rule)
                          .add_name("layer", entry.layer)
                          .add_bool("taken", entry.taken)
                          .add("ms", entry.ms)
                          .add("rival_ms", entry.rival_ms));
  }
  for (const CacheGraph::Format& entry : graph.layout) {
    layout.push_back(FlowWriter().add_name("value", entry.value).add_name("format", entry.format));
  }
  for (const CacheGraph::Stream& entry : graph.streams) {
    FlowWriter& item = streams.emplace_back();
    item.add_name("layer", entry.layer);
    if (entry.step >= 0) item.add_number("step", entry.step);
    item.add_number("stream", entry.stream);
  }
  for (const CacheGraph::Rerank& entry : graph.rerank) {
    rerank.push_back(FlowWriter()
                         .add("key", entry.key)
                         .add_name("layer", entry.layer)
                         .add("tactic", entry.tactic)
                         .add("ms", entry.ms)
                         .add("rival", entry.rival)
                         .add("rival_ms", entry.rival_ms));
  }
  FlowWriter writer;
  writer.add("graph", graph.key).add_quoted("device", graph.device).add_list("regions", regions);
  writer.add_list("layout", layout).add_list("streams", streams).add_list("rerank", rerank);
  return writer.line();
}

}  // namespace tenon
