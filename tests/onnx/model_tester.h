// ModelTester: an ONNX model of one node with f32 inputs, read, built and run through the public API on the CPU.
//
//   ModelTester("Softmax", 11).attr("axis", 1).input({1, 2}, {0, 0}).expect({1, 2}, {0.5, 0.5});
#ifndef TENON_TESTS_ONNX_MODEL_TESTER_H_
#define TENON_TESTS_ONNX_MODEL_TESTER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

#include "importers/onnx/onnx.pb.h"

namespace tenon::testing {

class ModelTester {
 public:
  ModelTester(const std::string& type, int opset) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
    node().set_op_type(type);
    model_.mutable_graph()->set_name("one_node");
    node().add_output("y");
    model_.mutable_graph()->add_output()->set_name("y");
  }

  ModelTester& attr(const std::string& name, std::int64_t value) {
    onnx::pb::AttributeProto& attr = *node().add_attribute();
    attr.set_name(name);
    attr.set_type(onnx::pb::AttributeProto::INT);
    attr.set_i(value);
    return *this;
  }
  ModelTester& input(const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
    const std::string name = "x" + std::to_string(values_.size());
    onnx::pb::ValueInfoProto& info = *model_.mutable_graph()->add_input();
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(TN_F32);
    auto& shape = *type.mutable_shape();
    for (const std::int64_t size : dims) shape.add_dim()->set_dim_value(size);
    node().add_input(name);
    values_.emplace_back(name, values);
    return *this;
  }

  void expect(const std::vector<std::int64_t>& dims, const std::vector<double>& values, double tolerance = 1e-6) {
    std::vector<float> found(values.size());
    std::vector<std::int64_t> found_dims;
    const Status status = run(&found_dims, &found);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(found_dims, dims);
    for (std::size_t n = 0; n < values.size(); ++n) EXPECT_NEAR(found[n], values[n], tolerance) << "element " << n;
  }
  void expect_error(const std::string& words) {
    std::vector<std::int64_t> dims;
    std::vector<float> values;
    const Status status = run(&dims, &values);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }

 private:
  onnx::pb::NodeProto& node() {
    onnx::pb::GraphProto& graph = *model_.mutable_graph();
    return graph.node_size() == 0 ? *graph.add_node() : *graph.mutable_node(0);
  }

  Status run(std::vector<std::int64_t>* dims, std::vector<float>* values) {
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / ("tenon_model_tester_" + std::to_string(getpid()) + ".onnx");
    std::ofstream(file, std::ios::binary) << model_.SerializeAsString();
    LibraryOptions silent;
    silent.log_threshold = TN_LOG_ERROR;
    TENON_ASSIGN(Library library, Library::create(silent));
    const auto plugins = library.discover();
    if (!plugins.ok()) return plugins.status();
    TENON_ASSIGN(Network network, Network::create(library));
    const Status imported = network.import(file.string(), "onnx", "");
    std::filesystem::remove(file);
    TENON_RETURN_IF_ERROR(imported);
    TENON_ASSIGN(BuilderConfig config, BuilderConfig::create());
    TENON_RETURN_IF_ERROR(config.set("device", "cpu"));
    TENON_RETURN_IF_ERROR(config.set("on_fallback", "allow"));
    TENON_ASSIGN(auto plan, Builder(library).build(network, config));
    TENON_ASSIGN(Engine engine, Runtime(library, "cpu").create(plan.data(), plan.size()));
    TENON_ASSIGN(ExecutionContext context, ExecutionContext::create(engine));
    std::vector<std::shared_ptr<void>> memory;
    for (const auto& [name, numbers] : values_) {
      TENON_ASSIGN(memory.emplace_back(), engine.allocate(std::max<std::size_t>(numbers.size() * sizeof(float), 1)));
      TENON_RETURN_IF_ERROR(engine.upload(memory.back().get(), numbers.data(), numbers.size() * sizeof(float)));
      TENON_RETURN_IF_ERROR(context.set_tensor(name, memory.back().get()));
    }
    *dims = engine.outputs().at(0).dims;
    std::size_t count = 1;
    for (const std::int64_t size : *dims) count *= static_cast<std::size_t>(size);
    values->resize(count);
    TENON_ASSIGN(memory.emplace_back(), engine.allocate(std::max<std::size_t>(count * sizeof(float), 1)));
    TENON_RETURN_IF_ERROR(context.set_tensor("y", memory.back().get()));
    TENON_RETURN_IF_ERROR(context.execute());
    return engine.download(values->data(), memory.back().get(), count * sizeof(float));
  }

  onnx::pb::ModelProto model_;
  std::vector<std::pair<std::string, std::vector<float>>> values_;
};

}  // namespace tenon::testing

#endif  // TENON_TESTS_ONNX_MODEL_TESTER_H_
