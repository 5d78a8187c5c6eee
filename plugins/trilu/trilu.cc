// tenon.trilu/1: the upper or lower triangle of matrices, and Tenon's kernel for it.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/integers.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

struct Columns {
  int64_t begin;
  int64_t end;
};

// The columns of a row that stay: from the diagonal k on, or up to it.
Columns kept(bool upper, int64_t row, int64_t k, int64_t columns) {
  k = std::clamp<int64_t>(k, -(int64_t{1} << 60), int64_t{1} << 60);  // so that the sum fits
  if (upper) return {std::clamp<int64_t>(row + k, 0, columns), columns};
  return {0, std::clamp<int64_t>(row + k + 1, 0, columns)};
}

void trilu_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (x.rank() < 2) throw Invalid(text("input 'x': expected rank 2 or more, found ", to_text(x.dims())));
  if (question.has_input(1)) {
    check_index_dtype(question.input(1), "k");
    if (question.input(1).elements() != 1) {
      throw Invalid(text("input 'k': expected one number, found dims ", to_text(question.input(1).dims())));
    }
  }
  question.output(0, x.dtype(), x.dims());
}

void trilu_reference(const Reference& call) {
  const Dims dims = call.output(0).dims();
  const int last = dims.rank - 1;
  const bool upper = call.attrs().flag("upper");
  const int64_t k = call.has_input(1) ? call.input(1).integer(0) : 0;
  const auto bytes = static_cast<size_t>(move_bytes(call.output(0).dtype()));
  const char* x = static_cast<const char*>(call.input(0).data());
  char* y = static_cast<char*>(call.output(0).data());
  for_each_in_box(dims, call.box(0), [&](const int64_t* index, int64_t linear, int64_t packed) {
    const Columns keep = kept(upper, index[last - 1], k, dims[last]);
    const int64_t column = index[last];
    char* to = y + static_cast<size_t>(packed) * bytes;
    if (column >= keep.begin && column < keep.end) {
      std::memcpy(to, x + static_cast<size_t>(linear) * bytes, bytes);
    } else {
      std::memset(to, 0, bytes);
    }
  });
}

class TriluKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    upper_ = config.site().attrs().flag("upper");
    has_k_ = config.site().has_input(1);
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = outputs[0].dims;
    const int last = dims.rank - 1;
    if (last < 1 || dims.elements() == 0) return;
    const int64_t rows = dims[last - 1], columns = dims[last];
    const int64_t k = has_k_ ? Tensor(inputs[1]).integer(0) : 0;
    const char* x = static_cast<const char*>(inputs[0].data);
    char* y = static_cast<char*>(outputs[0].data);
    const auto size = [&](int64_t count) { return static_cast<size_t>(count * bytes_); };
    cpu::parallel_ranges(to_parallel(exec), dims.product(0, last), std::max<int64_t>(16384 / columns, 1),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t row = begin; row < end; ++row) {
                             const Columns keep = kept(upper_, row % rows, k, columns);
                             const char* from = x + size(row * columns);
                             char* to = y + size(row * columns);
                             std::memset(to, 0, size(keep.begin));
                             if (from != to) {
                               std::memcpy(to + size(keep.begin), from + size(keep.begin), size(keep.end - keep.begin));
                             }
                             std::memset(to + size(keep.end), 0, size(columns - keep.end));
                           }
                         });
  }

 private:
  bool upper_ = true, has_k_ = false;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.trilu", "1", "Apache-2.0",
             tenon::op("tenon.trilu/1")
                 .doc("The upper or lower triangle of matrices, zeros elsewhere (ONNX Trilu-14, numpy's triu and tril)")
                 .attr_i64("upper", "1: the diagonal and what is above it, 0: and what is below it")
                 .default_value("1")
                 .range("0|1")
                 .input("x", "any dtype of 1, 2, 4 or 8 bytes")
                 .input("k", "i64 or i32, one number: the diagonal, those above the main one are positive; default: 0")
                 .optional()
                 .output("y")
                 .infer(tenon::plugins::trilu_infer)
                 .reference(tenon::plugins::trilu_reference)
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::TriluKernel>("tenon.trilu/1", "tenon.trilu.copy")
                 .deterministic()
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(0));
                   const tenon::Port port = tenon::row(site.dtype(0));
                   std::vector<tenon::Port> inputs = {port};
                   if (site.num_inputs() > 1) {
                     inputs.push_back(site.has_input(1) ? tenon::row(site.dtype(1)) : tenon::any_constant());
                   }
                   combos.add(tenon::ComboSpec(inputs, std::vector<tenon::Port>{port}).may_alias(0, 0));
                 }))
