// Arithmetic, comparison, logic and mathematical functions, element by element.
#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

void relu(OnnxNode& node) { node.output(0, node.add("tenon.relu/1", {node.input(0)})); }

void add(OnnxNode& node) { node.output(0, node.add("tenon.add/1", {node.input(0), node.input(1)})); }

const Rule kRules[] = {
    {"Add", {7, 13, 14}, add},
    {"Relu", {6, 13, 14}, relu},
};

}  // namespace

std::span<const Rule> elementwise_rules() { return kRules; }

}  // namespace tenon::onnx
