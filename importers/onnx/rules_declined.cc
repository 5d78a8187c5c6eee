// Operators that are left out on purpose, with the reason that users read.
#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

constexpr const char* kStrings = "tensors of strings are not supported";
constexpr const char* kTraining = "it is for training only";
constexpr const char* kRandom = "its results are random, so that no tactic could be verified";

const DeclinedOp kDeclined[] = {
    {"StringConcat", kStrings},
    {"StringNormalizer", kStrings},
    {"StringSplit", kStrings},
    {"RegexFullMatch", kStrings},
    {"ImageDecoder", "pictures are decoded before the network runs"},
    {"RandomNormal", kRandom},
    {"RandomNormalLike", kRandom},
    {"RandomUniform", kRandom},
    {"RandomUniformLike", kRandom},
    {"Multinomial", kRandom},
    {"Bernoulli", kRandom},
    {"*", kTraining, "ai.onnx.preview.training"},
    {"*", "operators of classical machine learning are not supported", "ai.onnx.ml"},
};

}  // namespace

std::span<const DeclinedOp> declined_ops() { return kDeclined; }

}  // namespace tenon::onnx
