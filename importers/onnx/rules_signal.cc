// Signals. Windows and the mel matrix are constants: their inputs are sizes and edges.
#include <algorithm>
#include <cmath>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kMostElements = int64_t{1} << 28;  // of what a size or an edge can be

TnValueId transform(OnnxNode& node, TnValueId axis) {
  NewAttrs attrs = node.attrs();
  attrs.i64("inverse", node.flag("inverse", false) ? 1 : 0).i64("onesided", node.flag("onesided", false) ? 1 : 0);
  return node.add("tenon.dft/1", attrs, {node.input(0), node.optional_input(1), axis});
}

void dft_17(OnnxNode& node) { node.output(0, transform(node, node.constant({node.i64("axis", 1)}))); }

void dft_20(OnnxNode& node) {
  const TnValueId axis = node.has_input(2) ? node.input(2) : node.constant({-2});
  node.output(0, transform(node, axis));
}

void stft(OnnxNode& node) {
  std::vector<TnValueId> inputs = {node.input(0), node.input(1)};
  if (node.has_input(2) || node.has_input(3)) inputs.push_back(node.optional_input(2));
  if (node.has_input(3)) inputs.push_back(node.input(3));
  node.output(0, node.add("tenon.stft/1", node.attrs().i64("onesided", node.flag("onesided", true) ? 1 : 0), inputs));
}

int64_t known_integer(OnnxNode& node, int n, int64_t least) {
  const double value = node.required_scalar(n);
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(kMostElements))) {
    throw Invalid(text("input ", n, ": expected ", least, " to ", kMostElements, ", found ", value));
  }
  return static_cast<int64_t>(value);
}

TnValueId constant(OnnxNode& node, const Dims& dims, const std::vector<double>& values) {
  const TnValueId exact = node.constant(host_tensor(TN_F64, dims, values.data()));
  return node.cast(exact, static_cast<int32_t>(node.i64("output_datatype", TN_F32)));
}

/// a - b cos(2 pi n / N) + c cos(4 pi n / N)
void window(OnnxNode& node) {
  const int64_t size = known_integer(node, 0, 0);
  const bool hann = node.type() == "HannWindow", hamming = node.type() == "HammingWindow";
  const double a = hann ? 0.5 : hamming ? 25.0 / 46 : 0.42;
  const double b = hann ? 0.5 : hamming ? 1 - a : 0.5;
  const double c = hann || hamming ? 0 : 0.08;
  // A symmetric window of one element is its middle.
  const double period = static_cast<double>(node.flag("periodic", true) ? size : size - 1);
  std::vector<double> values(static_cast<size_t>(node.made_elements({size})), 1.0);
  for (size_t n = 0; n < values.size() && period > 0; ++n) {
    const double turn = 2 * kPi * static_cast<double>(n) / period;
    values[n] = a - b * std::cos(turn) + c * std::cos(2 * turn);
  }
  node.output(0, constant(node, {size}, values));
}

/// Triangles whose edges are equally far apart on the mel scale, mel(f) = 2595 log10(1 + f / 700).
void mel_weight_matrix(OnnxNode& node) {
  const int64_t bands = known_integer(node, 0, 1), dft_length = known_integer(node, 1, 1),
                sample_rate = known_integer(node, 2, 1);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double lowest = node.required_scalar(3), highest = node.required_scalar(4);
  if (!(lowest >= 0 && highest >= lowest && highest < 1e9)) {
    throw Invalid(text("inputs 3 and 4: expected edges 0 <= lower <= upper < 1e9, found ", lowest, " and ", highest));
  }
  const double step = (mel(highest) - mel(lowest)) / static_cast<double>(bands + 2);
  const int64_t bins = dft_length / 2 + 1;
  std::vector<double> values(static_cast<size_t>(node.made_elements({bins, bands})), 0.0);
  std::vector<int64_t> edges;
  for (int64_t n = 0; n < bands + 2; ++n) {
    const double hertz = 700 * (std::pow(10, (mel(lowest) + step * static_cast<double>(n)) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(dft_length + 1) * hertz / static_cast<double>(sample_rate))));
  }
  for (int64_t band = 0; band < bands; ++band) {
    const auto edge = [&](int64_t n) { return edges[static_cast<size_t>(band + n)]; };
    const double rise = static_cast<double>(edge(1) - edge(0)), fall = static_cast<double>(edge(2) - edge(1));
    for (int64_t bin = edge(0); bin < std::min(bins, std::max(edge(1) + 1, edge(2))); ++bin) {
      const double up = static_cast<double>(bin - edge(0)), down = static_cast<double>(edge(2) - bin);
      values[static_cast<size_t>(bin * bands + band)] = bin == edge(1) ? 1 : bin < edge(1) ? up / rise : down / fall;
    }
  }
  node.output(0, constant(node, {bins, bands}, values));
}

void tf_idf(OnnxNode& node) {
  if (node.has("pool_strings")) throw Unsupported{"attribute pool_strings"};
  NewAttrs attrs = node.attrs();
  attrs.str("mode", node.str("mode")).i64("max_skip_count", node.i64("max_skip_count"));
  attrs.i64("min_gram_length", node.i64("min_gram_length")).i64("max_gram_length", node.i64("max_gram_length"));
  attrs.i64s("pool", node.i64s("pool_int64s")).i64s("ngram_counts", node.i64s("ngram_counts"));
  attrs.i64s("ngram_indexes", node.i64s("ngram_indexes"));
  if (node.has("weights")) attrs.f64s("weights", node.f64s("weights"));
  node.output(0, node.add("tenon.tf_idf/1", attrs, {node.input(0)}));
}

const Rule kRules[] = {
    {"DFT", {17}, dft_17},
    {"DFT", {20}, dft_20},
    {"STFT", {17}, stft},
    {"HannWindow", {17}, window},
    {"HammingWindow", {17}, window},
    {"BlackmanWindow", {17}, window},
    {"MelWeightMatrix", {17}, mel_weight_matrix},
    {"TfIdfVectorizer", {9}, tf_idf},
};

}  // namespace

std::span<const Rule> signal_rules() { return kRules; }

}  // namespace tenon::onnx
