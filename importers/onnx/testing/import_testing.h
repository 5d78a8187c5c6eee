// Messages of small models, and ImportTest: a folder of its own for them, imported through the public API and run by
// the ops' plain references.
//
// Thread rule: used by the thread that runs the test.
#ifndef TENON_IMPORTERS_ONNX_TESTING_IMPORT_TESTING_H_
#define TENON_IMPORTERS_ONNX_TESTING_IMPORT_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "importers/onnx/onnx.pb.h"

namespace tenon::onnx {

using Names = std::vector<std::string>;
using Floats = std::vector<float>;
using Sizes = std::vector<int64_t>;

// --- parts of a model ---

inline pb::NodeProto* add_node(pb::GraphProto* graph, const std::string& type, const Names& inputs,
                               const Names& outputs, const std::string& name = "") {
  pb::NodeProto* node = graph->add_node();
  const size_t dot = type.rfind('.');  // "com.acme.Twice"
  if (dot != std::string::npos) node->set_domain(type.substr(0, dot));
  node->set_op_type(dot == std::string::npos ? type : type.substr(dot + 1));
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  if (!name.empty()) node->set_name(name);
  return node;
}

inline pb::AttributeProto* add_attribute(pb::NodeProto* node, const std::string& name,
                                         pb::AttributeProto::AttributeType type) {
  pb::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}
inline void set_int(pb::NodeProto* node, const std::string& name, int64_t value) {
  add_attribute(node, name, pb::AttributeProto::INT)->set_i(value);
}
inline pb::GraphProto* set_graph(pb::NodeProto* node, const std::string& name) {
  pb::GraphProto* graph = add_attribute(node, name, pb::AttributeProto::GRAPH)->mutable_g();
  graph->set_name(name);
  return graph;
}
/// The attribute `name` is what the call of the function has as `from`.
inline void refer(pb::NodeProto* node, const std::string& name, pb::AttributeProto::AttributeType type,
                  const std::string& from) {
  add_attribute(node, name, type)->set_ref_attr_name(from);
}

inline void set_tensor_type(pb::ValueInfoProto* info, int32_t dtype, const Sizes& dims) {
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(dtype);
  type->mutable_shape();
  for (const int64_t size : dims) type->mutable_shape()->add_dim()->set_dim_value(size);
}
inline void add_input(pb::GraphProto* graph, const std::string& name, const Sizes& dims, int32_t dtype = TN_F32) {
  pb::ValueInfoProto* info = graph->add_input();
  info->set_name(name);
  set_tensor_type(info, dtype, dims);
}
/// The inputs and outputs of a body.
inline void add_ends(pb::GraphProto* graph, const Names& inputs, const Names& outputs) {
  for (const std::string& input : inputs) graph->add_input()->set_name(input);
  for (const std::string& output : outputs) graph->add_output()->set_name(output);
}

inline pb::TensorProto* add_tensor(pb::GraphProto* graph, const std::string& name, const Sizes& dims, int32_t dtype) {
  pb::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(dtype);
  for (const int64_t size : dims) tensor->add_dims(size);
  return tensor;
}
inline pb::TensorProto* add_floats(pb::GraphProto* graph, const std::string& name, const Sizes& dims,
                                   const Floats& values) {
  pb::TensorProto* tensor = add_tensor(graph, name, dims, TN_F32);
  for (const float value : values) tensor->add_float_data(value);
  return tensor;
}
inline void add_i64s(pb::GraphProto* graph, const std::string& name, const Sizes& dims, const Sizes& values) {
  pb::TensorProto* tensor = add_tensor(graph, name, dims, TN_I64);
  for (const int64_t value : values) tensor->add_int64_data(value);
}
inline void add_bool(pb::GraphProto* graph, const std::string& name, bool value) {
  add_tensor(graph, name, {}, TN_BOOL)->add_int32_data(value ? 1 : 0);
}

inline void add_opset(pb::ModelProto* model, const std::string& domain, int64_t version) {
  auto* opset = model->add_opset_import();
  opset->set_domain(domain);
  opset->set_version(version);
}

/// A model of the given opset with a graph without nodes.
inline pb::ModelProto empty_model(int64_t opset = 17) {
  pb::ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name("graph");
  if (opset > 0) add_opset(&model, "", opset);
  return model;
}

/// x [2,3] -> Relu -> y.
inline pb::ModelProto relu_model() {
  pb::ModelProto model = empty_model();
  add_input(model.mutable_graph(), "x", {2, 3});
  add_node(model.mutable_graph(), "Relu", {"x"}, {"y"}, "act");
  add_ends(model.mutable_graph(), {}, {"y"});
  return model;
}

// --- the test ---

struct Computed {
  Sizes dims;
  Floats values;
};

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("tenon_onnx_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "model");
    LibraryOptions options;
    options.log_threshold = TN_LOG_INFO;
    options.log = [this](int, const std::string& message) { log_.push_back(message); };
    auto library = Library::create(options);
    ASSERT_TRUE(library.ok()) << library.status().message();
    library_.emplace(*library);
    ASSERT_TRUE(library_->discover().ok());
    log_.clear();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Files of the model lie in folder_/model, so that there is a folder around it.
  std::string write(const std::string& name, const std::string& contents) const {
    const std::filesystem::path path = folder_ / "model" / name;
    std::ofstream(path, std::ios::binary) << contents;
    return path.string();
  }

  /// Why the import fails; fills network_ if it does not.
  std::string failure_of_bytes(const std::string& bytes, const std::string& options = "") {
    auto network = Network::create(*library_);
    if (!network.ok()) return network.status().message();
    network_.emplace(*network);
    const std::string path = write("m.onnx", bytes);
    const auto start = std::chrono::steady_clock::now();
    status_ = network_->import(path, "tenon.onnx", options);
    longest_ = std::max(longest_, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return status_.ok() ? "no failure" : status_.message();
  }
  std::string failure_of(const pb::ModelProto& model, const std::string& options = "") {
    return failure_of_bytes(model.SerializeAsString(), options);
  }
  void import(const pb::ModelProto& model, const std::string& options = "") {
    ASSERT_EQ(failure_of(model, options), "no failure");
  }
  /// The import fails, and its message holds every one of the parts.
  void expect_failure(const pb::ModelProto& model, const Names& parts, const std::string& options = "") {
    const std::string message = failure_of(model, options);
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  }

  nlohmann::json describe() const { return nlohmann::json::parse(*network_->describe()); }
  Names names(const char* list) const {
    Names result;
    const nlohmann::json description = describe();
    for (const auto& item : description[list]) result.push_back(item["name"]);
    return result;
  }

  /// Every f32 value of the network for these inputs, in the order of its inputs.
  std::map<std::string, Computed> run(const std::vector<Floats>& inputs) const {
    std::vector<const void*> pointers;
    for (const Floats& input : inputs) pointers.push_back(input.data());
    TnReferenceRun* run = nullptr;
    if (tn_reference_run(network_->get(), pointers.data(), static_cast<uint32_t>(pointers.size()), &run) != TN_OK) {
      ADD_FAILURE() << tn_last_error();
      return {};
    }
    std::map<std::string, Computed> result;
    for (uint32_t n = 0; n < tn_reference_num_values(run); ++n) {
      const char* name = nullptr;
      TnTensor tensor{};
      if (tn_reference_value(run, n, &name, &tensor) != TN_OK || tensor.dtype != TN_F32) continue;
      Computed& value = result[name];
      value.dims.assign(tensor.dims.d, tensor.dims.d + tensor.dims.rank);
      size_t count = 1;
      for (const int64_t size : value.dims) count *= static_cast<size_t>(size);
      value.values.assign(static_cast<const float*>(tensor.data), static_cast<const float*>(tensor.data) + count);
    }
    tn_reference_release(run);
    return result;
  }

  static inline double longest_ = 0;  ///< seconds of an import
  std::filesystem::path folder_;
  std::optional<Library> library_;
  std::optional<Network> network_;
  Status status_;
  Names log_;
};

}  // namespace tenon::onnx

#endif  // TENON_IMPORTERS_ONNX_TESTING_IMPORT_TESTING_H_
