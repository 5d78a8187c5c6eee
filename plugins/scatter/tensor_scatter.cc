// tenon.tensor_scatter/1: writes positions of a sequence into a cache, and Tenon's kernel for it.
#include <optional>

#include "plugins/common/integers.h"
#include "plugins/scatter/scatter.h"

namespace tenon::plugins {
namespace {

struct Cache {
  int64_t batch = 0;   // samples
  int64_t outer = 0;   // slices of a sample before the axis
  int64_t most = 0;    // positions of the cache
  int64_t length = 0;  // positions of the update
  int64_t inner = 0;   // elements at each position
  bool circular = false;

  Cache(const Attrs& attrs, const Dims& cache, const Dims& update) {
    if (cache.rank < 2) throw Invalid(text("expected a cache of rank 2 or more, found ", to_text(cache)));
    const int axis = normalize_axis(attrs.i64("axis"), cache.rank);
    if (axis == 0) throw Invalid("attribute 'axis': expected none of the batch axis, found 0");
    Dims expected = cache;
    if (update.rank == cache.rank) expected[axis] = update[axis];
    if (update != expected || update[axis] > cache[axis]) {
      throw Invalid(text("input 'update': expected dims of ", to_text(cache), " but for no more of axis ", axis,
                         ", found ", to_text(update)));
    }
    batch = cache[0];
    outer = cache.product(1, axis);
    most = cache[axis];
    length = update[axis];
    inner = cache.product(axis + 1, cache.rank);
    circular = attrs.str("mode") == "circular";
  }
  // Where position 0 of the update goes. Out of range at run time: the nearest place where all of it fits.
  int64_t first(int64_t written) const {
    if (!circular) return std::clamp<int64_t>(written, 0, most - length);
    return most == 0 ? 0 : (written % most + most) % most;
  }
};

int64_t written(const Tensor* indices, int64_t sample) { return indices ? indices->integer(sample) : 0; }

void tensor_scatter_infer(const Infer& question) {
  const Tensor x = question.input(0), update = question.input(1);
  const Cache cache(question.attrs(), x.dims(), update.dims());
  if (update.dtype() != x.dtype()) {
    throw Invalid(text("input 'update': expected ", dtype_name(x.dtype()), ", found ", dtype_name(update.dtype())));
  }
  if (question.has_input(2)) {
    const Tensor indices = question.input(2);
    check_index_dtype(indices, "write_indices");
    if (indices.dims() != Dims{cache.batch}) {
      throw Invalid(text("input 'write_indices': expected dims ", to_text(Dims{cache.batch}), ", found ",
                         to_text(indices.dims())));
    }
    for (int64_t n = 0; indices.has_data() && !cache.circular && n < cache.batch; ++n) {
      const int64_t at = indices.integer(n);
      if (at < 0 || at > cache.most - cache.length) {
        throw Invalid(text("input 'write_indices': expected 0 to ", cache.most - cache.length, " for ", cache.length,
                           " of ", cache.most, " positions, found ", at));
      }
    }
  }
  question.output(0, x.dtype(), x.dims());
}

void tensor_scatter_reference(const Reference& call) {
  const Cache cache(call.attrs(), call.input(0).dims(), call.input(1).dims());
  const Tensor indices = call.input(call.has_input(2) ? 2 : 0);
  const auto bytes = static_cast<size_t>(move_bytes(call.output(0).dtype()));
  const char* x = static_cast<const char*>(call.input(0).data());
  const char* update = static_cast<const char*>(call.input(1).data());
  char* y = static_cast<char*>(call.output(0).data());
  for_each_in_box(call.output(0).dims(), call.box(0), [&](const int64_t*, int64_t linear, int64_t packed) {
    const int64_t slice = linear / (cache.most * cache.inner), i = linear % cache.inner;
    const int64_t at = linear / cache.inner % cache.most;
    const int64_t first = cache.first(written(call.has_input(2) ? &indices : nullptr, slice / cache.outer));
    const int64_t from = cache.circular ? (at - first + cache.most) % cache.most : at - first;
    const char* source = from >= 0 && from < cache.length
                             ? update + static_cast<size_t>((slice * cache.length + from) * cache.inner + i) * bytes
                             : x + static_cast<size_t>(linear) * bytes;
    std::memcpy(y + static_cast<size_t>(packed) * bytes, source, bytes);
  });
}

class TensorScatterKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    cache_.emplace(config.site().attrs(), config.site().dims(0), config.site().dims(1));
    bytes_ = move_bytes(config.site().dtype(0));
    has_indices_ = config.site().has_input(2);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Cache& cache = *cache_;
    copy_whole(exec, inputs[0], outputs[0]);
    const Tensor indices(inputs[has_indices_ ? 2 : 0]);
    for (int64_t sample = 0; sample < cache.batch; ++sample) {
      const int64_t first = cache.first(written(has_indices_ ? &indices : nullptr, sample));
      const int64_t straight = std::min(cache.length, cache.most - first);  // the rest begins anew at position 0
      copy(exec, inputs[1], outputs[0], sample, 0, first, straight);
      copy(exec, inputs[1], outputs[0], sample, straight, 0, cache.length - straight);
    }
  }

 private:
  void copy(const Exec& exec, const TnTensor& update, const TnTensor& y, int64_t sample, int64_t from, int64_t to,
            int64_t count) const {
    const Cache& cache = *cache_;
    const int64_t dims[] = {cache.outer, count * cache.inner};
    const int64_t from_strides[] = {cache.length * cache.inner, 1}, to_strides[] = {cache.most * cache.inner, 1};
    cpu::copy_strided(
        2, dims, from_strides, to_strides, bytes_,
        static_cast<const char*>(update.data) + (sample * cache.outer * cache.length + from) * cache.inner * bytes_,
        static_cast<char*>(y.data) + (sample * cache.outer * cache.most + to) * cache.inner * bytes_,
        to_parallel(exec));
  }
  std::optional<Cache> cache_;
  int bytes_ = 0;
  bool has_indices_ = false;
};

}  // namespace

Definitions tensor_scatter_definitions() {
  return {
      op("tenon.tensor_scatter/1")
          .doc("A cache with positions of each sample overwritten, from write_indices[sample] on (ONNX "
               "TensorScatter-24)")
          .attr_str("mode", "circular: behind the last position comes the first")
          .default_value("linear")
          .range("linear|circular")
          .attr_i64("axis", "the axis of positions; negative: counted from the end")
          .default_value("-2")
          .input("cache", "samples first; any dtype of 1, 2, 4 or 8 bytes")
          .input("update", "the cache's dims, but fewer positions or as many")
          .input("write_indices",
                 "i64 or i32, one for each sample; default: 0. Out of range in mode linear: an error where they are "
                 "known when the network is built, else the nearest place where the update fits")
          .optional()
          .output("y")
          .infer(tensor_scatter_infer)
          .reference(tensor_scatter_reference)
          .tolerance(0, 0),
      kernel<TensorScatterKernel>("tenon.tensor_scatter/1", "tenon.tensor_scatter.copy")
          .deterministic()
          .more_combos([](const Site& site, Combos& combos) {
            move_bytes(site.dtype(0));
            const Port port = row(site.dtype(0));
            std::vector<Port> inputs = {port, port};
            if (site.num_inputs() > 2) inputs.push_back(site.has_input(2) ? row(site.dtype(2)) : any_constant());
            combos.add(ComboSpec(inputs, std::vector<Port>{port}).may_alias(0, 0));
          })};
}

}  // namespace tenon::plugins
