// Times convolutions in oneDNN alone, all of a network one after the other, in the formats that oneDNN likes best.
//
//   onednn_convolutions PASSES < LIST      each line of LIST: batch C H W K KH KW stride_h stride_w top left bottom
//   right groups
//
// float32 with bias and ReLU. Prints the median milliseconds of a pass over all of them; what a network needs beside
// its convolutions (pooling, conversions, sums) is not in it. Threads: OMP_NUM_THREADS.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

namespace {

using dnnl::memory;

struct Layer {
  dnnl::convolution_forward run;
  std::unordered_map<int, memory> arguments;
};

memory filled(const memory::desc& desc, const dnnl::engine& engine) {
  memory result(desc, engine);
  auto* values = static_cast<float*>(result.get_data_handle());
  const std::size_t count = desc.get_size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) * 0.01f - 0.08f;
  return result;
}

Layer make_layer(const std::vector<memory::dim>& d, const dnnl::engine& engine) {
  const memory::dim n = d[0], c = d[1], k = d[4], groups = d[13];
  const memory::dim out_h = (d[2] + d[9] + d[11] - d[5]) / d[7] + 1, out_w = (d[3] + d[10] + d[12] - d[6]) / d[8] + 1;
  const auto any = [](const memory::dims& dims) {
    return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
  };
  const memory::desc weights = groups > 1 ? any({groups, k / groups, c / groups, d[5], d[6]}) : any({k, c, d[5], d[6]});
  dnnl::post_ops relu;
  relu.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
  dnnl::primitive_attr attr;
  attr.set_post_ops(relu);
  const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                             any({n, c, d[2], d[3]}), weights,
                                             memory::desc({k}, memory::data_type::f32, memory::format_tag::x),
                                             any({n, k, out_h, out_w}), {d[7], d[8]}, {d[9], d[10]}, {d[11], d[12]});
  const dnnl::convolution_forward::primitive_desc how(what, attr, engine);
  return {dnnl::convolution_forward(how),
          {{DNNL_ARG_SRC, filled(how.src_desc(), engine)},
           {DNNL_ARG_WEIGHTS, filled(how.weights_desc(), engine)},
           {DNNL_ARG_BIAS, filled(how.bias_desc(), engine)},
           {DNNL_ARG_DST, filled(how.dst_desc(), engine)}}};
}

}  // namespace

int main(int argc, char** argv) try {
  const int passes = argc == 2 ? std::atoi(argv[1]) : 0;
  if (passes < 1) {
    std::fprintf(stderr, "usage: onednn_convolutions PASSES < LIST\n");
    return 2;
  }
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<Layer> layers;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::vector<memory::dim> numbers;
    for (memory::dim number; words >> number;) numbers.push_back(number);
    if (numbers.size() != 14) {
      std::fprintf(stderr, "expected 14 numbers, found %zu: %s\n", numbers.size(), line.c_str());
      return 1;
    }
    layers.push_back(make_layer(numbers, engine));
  }
  std::vector<double> times;
  for (int pass = -3; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    for (const Layer& layer : layers) layer.run.execute(stream, layer.arguments);
    stream.wait();
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (pass >= 0) times.push_back(taken.count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  std::printf("%.4f\n", times[times.size() / 2]);
  return 0;
} catch (const dnnl::error& error) {
  std::fprintf(stderr, "oneDNN: %s\n", error.what());
  return 1;
}
