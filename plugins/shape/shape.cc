// tenon.shape/1 and tenon.size/1: what is known of a tensor without its contents.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>

namespace tenon::plugins {
namespace {

struct Part {
  int begin;
  int end;
};

// The axes [start, end); negative positions count from the end, both are clamped (ONNX Shape-15).
Part part(const Attrs& attrs, int rank) {
  const auto place = [&](int64_t at) {
    return static_cast<int>(std::clamp<int64_t>(at < 0 ? std::max(at, int64_t{-rank}) + rank : at, 0, rank));
  };
  const int begin = place(attrs.i64("start"));
  return {begin, std::max(begin, place(attrs.i64("end")))};
}

// Elements of y, all of which depend on dims alone.
void write_dims(const Attrs& attrs, const Dims& dims, int64_t* y) {
  const Part axes = part(attrs, dims.rank);
  std::copy(dims.d + axes.begin, dims.d + axes.end, y);
}
void write_size(const Attrs&, const Dims& dims, int64_t* y) { *y = dims.elements(); }

template <void (*write)(const Attrs&, const Dims&, int64_t*)>
class DimsKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    values_.resize(static_cast<size_t>(config.site().output_dims(0).elements()));
    write(config.site().attrs(), config.site().dims(0), values_.data());
  }
  void enqueue(const Exec&, const TnTensor*, const TnTensor* outputs) const override {
    std::copy(values_.begin(), values_.end(), static_cast<int64_t*>(outputs[0].data));
  }

 private:
  std::vector<int64_t> values_;
};

void add_combos(const Site& site, Combos& combos) { combos.add(ComboSpec({row(site.dtype(0))}, {row(TN_I64)})); }

Op shape_op() {
  return op("tenon.shape/1")
      .doc("The dims of x as a list (ONNX Shape-15)")
      .attr_i64("start", "first axis; negative: counted from the end; clamped")
      .default_value("0")
      .attr_i64("end", "axis after the last; negative: counted from the end; clamped")
      .default_value("9223372036854775807")
      .input("x", "any dtype")
      .dims_only()
      .output("y", "i64, rank 1")
      .infer([](const Infer& question) {
        const Part axes = part(question.attrs(), question.input(0).rank());
        question.output(0, TN_I64, Dims{axes.end - axes.begin});
      })
      .reference([](const Reference& call) {
        const Dims dims = call.input(0).dims();
        const Part axes = part(call.attrs(), dims.rank);
        call.fill<int64_t>(0,
                           [&](const int64_t* index, int64_t) { return dims[axes.begin + static_cast<int>(*index)]; });
      })
      .tolerance(0, 0);
}

Op size_op() {
  return op("tenon.size/1")
      .doc("The number of elements of x (ONNX Size-13)")
      .input("x", "any dtype")
      .dims_only()
      .output("y", "i64, rank 0")
      .infer([](const Infer& question) { question.output(0, TN_I64, Dims{}); })
      .reference([](const Reference& call) {
        call.fill<int64_t>(0, [&](const int64_t*, int64_t) { return call.input(0).elements(); });
      })
      .tolerance(0, 0);
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.shape", "1", "Apache-2.0", tenon::plugins::shape_op(), tenon::plugins::size_op(),
             tenon::kernel<tenon::plugins::DimsKernel<tenon::plugins::write_dims>>("tenon.shape/1", "tenon.shape.copy")
                 .deterministic()
                 .more_combos(tenon::plugins::add_combos),
             tenon::kernel<tenon::plugins::DimsKernel<tenon::plugins::write_size>>("tenon.size/1", "tenon.size.copy")
                 .deterministic()
                 .more_combos(tenon::plugins::add_combos))
