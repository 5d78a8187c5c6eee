#include "core/site/run_once.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "core/base/failure.h"
#include "core/graph/convert.h"
#include "core/site/elements.h"
#include "core/site/layout.h"

namespace tenon {
namespace {

/// Normal numbers with the standard library's exactly specified generator; Box-Muller, since the distributions of the
/// library are not specified bit for bit.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : engine_(seed) {}
  double next() {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    const double radius = std::sqrt(-2.0 * std::log(uniform())), angle = 6.283185307179586 * uniform();
    second_ = radius * std::sin(angle);
    has_second_ = true;
    return radius * std::cos(angle);
  }
  std::uint64_t word() { return engine_(); }

 private:
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) / 9007199254740992.0; }
  std::mt19937_64 engine_;
  double second_ = 0;  // Box-Muller gives two at a time
  bool has_second_ = false;
};

bool is_float(std::int32_t dtype) { return dtype == TN_F32 || dtype == TN_F64 || is_small_float(dtype); }

/// Rounds values to what `dtype` can hold: a kernel's result is never compared with a number that it could not write.
void round_to(std::int32_t dtype, std::vector<double>* values) {
  if (reference_dtype(dtype) == dtype) return;
  for (double& value : *values) {
    std::uint16_t bits = 0;
    store_element(&bits, dtype, 0, value);
    value = load_element(&bits, dtype, 0);
  }
}

/// Boxes of one output that cover about `budget` elements: both corners, then random places.
std::vector<TnBox> sample_boxes(const TnDims& dims, std::int64_t count, std::int64_t budget, Normal* random) {
  TnBox whole{};
  for (int axis = 0; axis < dims.rank; ++axis) whole.size[axis] = dims.d[axis];
  if (count <= budget) return {whole};
  constexpr int kBoxes = 16;
  TnBox shape{};
  std::int64_t left = std::max<std::int64_t>(1, budget / kBoxes);
  for (int axis = dims.rank - 1; axis >= 0; --axis) {
    const std::int64_t want = axis == dims.rank - 1 ? 16 : 4;
    shape.size[axis] = std::max<std::int64_t>(1, std::min({dims.d[axis], want, left}));
    left /= shape.size[axis];
  }
  std::vector<TnBox> boxes;
  for (int i = 0; i < kBoxes; ++i) {
    TnBox box = shape;
    for (int axis = 0; axis < dims.rank; ++axis) {
      const std::int64_t room = dims.d[axis] - shape.size[axis];
      if (i == 1) {
        box.start[axis] = room;
      } else if (i > 1 && room > 0) {
        box.start[axis] = static_cast<std::int64_t>(random->word() % static_cast<std::uint64_t>(room + 1));
      }
    }
    boxes.push_back(box);
  }
  return boxes;
}

std::int64_t box_elements(const TnBox& box, int rank) {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) count *= box.size[axis];
  return count;
}

/// The elements of a row-major tensor that lie in the box, packed.
std::vector<float> box_of(const TnTensor& tensor, const TnBox& box) {
  const int rank = tensor.dims.rank;
  std::vector<float> elements(static_cast<std::size_t>(box_elements(box, rank)));
  for (std::size_t e = 0; e < elements.size(); ++e) {
    auto rest = static_cast<std::int64_t>(e);
    std::int64_t at = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += (box.start[axis] + rest % box.size[axis]) * tensor.strides[axis];
      rest /= box.size[axis];
    }
    elements[e] = static_cast<float>(load_element(tensor.data, tensor.dtype, at));
  }
  return elements;
}

}  // namespace

Result<std::vector<std::shared_ptr<const HostTensor>>> make_inputs(const Site& site, const OpRef& op,
                                                                   std::uint64_t seed) {
  const SiteDesc& desc = site.desc();
  std::vector<std::vector<char>> storage(desc.num_read());
  std::vector<TnTensor> tensors(desc.num_read(), TnTensor{});
  Normal random(seed);
  for (std::uint32_t i = 0; i < desc.num_read(); ++i) {
    if (desc.dtypes[i] == TN_DTYPE_NONE) continue;
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(desc.dtypes[i], desc.dims[i], row_format()));
    TENON_ASSIGN(const std::int64_t count, element_count(desc.dims[i]));
    storage[i].resize(bytes);
    tensors[i] = tensor_view(storage[i].data(), desc.dtypes[i], desc.dims[i], row_format(), TN_MEMORY_HOST);
    if (desc.constants[i] != nullptr) {
      // A copy: the generator fills every input that it is given, and the constant belongs to the network.
      std::copy_n(static_cast<const char*>(desc.constants[i]->data()), bytes, storage[i].data());
      continue;
    }
    for (std::int64_t e = 0; e < count; ++e) {
      // Integers stay small enough to be valid almost anywhere; ops that need more bring a generator.
      const double value = is_float(desc.dtypes[i]) ? random.next() : static_cast<double>(random.word() % 4);
      store_element(storage[i].data(), desc.dtypes[i], e, value);
    }
  }
  if (op.op->generate != nullptr) {
    clear_failure();
    TENON_RETURN_IF_ERROR(
        take_failure(op.op->generate(op.host, op.op, &desc.attrs, seed, tensors.data(), desc.num_inputs),
                     fmt::format("op {}: generate", desc.op_id)));
  }
  std::vector<std::shared_ptr<const HostTensor>> inputs(desc.num_read());
  for (std::uint32_t i = 0; i < desc.num_read(); ++i) {
    if (desc.dtypes[i] == TN_DTYPE_NONE) continue;
    // The same numbers for every combo.
    if ((desc.flags & TN_SITE_ALLOW_BF16) != 0 && desc.dtypes[i] == TN_F32 && desc.constants[i] == nullptr) {
      const std::int64_t count = element_count(desc.dims[i]).value();
      std::vector<std::uint16_t> rounded(static_cast<std::size_t>(count));
      narrow(TN_BF16, storage[i].data(), rounded.data(), count);
      widen(TN_BF16, rounded.data(), storage[i].data(), count);
    }
    inputs[i] = desc.constants[i];
    if (inputs[i] == nullptr) {
      TENON_ASSIGN(inputs[i], HostTensor::create(desc.dtypes[i], desc.dims[i], storage[i].data(), storage[i].size()));
    }
  }
  return inputs;
}

Result<std::vector<ReferenceSample>> sample_reference(const Site& site, const OpRef& op,
                                                      const std::vector<std::shared_ptr<const HostTensor>>& inputs,
                                                      std::uint64_t max_elements) {
  const SiteDesc& desc = site.desc();
  if (op.op->reference == nullptr) {
    return Status(Code::kInvalid,
                  fmt::format("op {} has no reference, so no tactic of it can be verified", desc.op_id));
  }
  std::vector<std::shared_ptr<const HostTensor>> widened(inputs.size());
  std::vector<TnTensor> input_views(inputs.size(), TnTensor{});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    TENON_ASSIGN(widened[i], widen_for_reference(inputs[i]));
    input_views[i] = widened[i]->view();
  }
  const std::int64_t budget = static_cast<std::int64_t>(max_elements) / std::max(1u, desc.num_outputs);
  Normal random(0x7e404);
  std::vector<ReferenceSample> samples;
  for (std::uint32_t output = 0; output < desc.num_outputs; ++output) {
    const TnDims& dims = desc.dims[desc.num_read() + output];
    const std::int32_t dtype = reference_dtype(desc.dtypes[desc.num_read() + output]);
    TENON_ASSIGN(const std::int64_t count, element_count(dims));
    if (count == 0) continue;
    for (const TnBox& box : sample_boxes(dims, count, budget, &random)) {
      ReferenceSample sample;
      sample.output = output;
      sample.box = box;
      const std::int64_t elements = box_elements(box, dims.rank);
      std::vector<char> bytes(static_cast<std::size_t>(elements) * static_cast<std::size_t>(dtype_bits(dtype) / 8));
      // Only this output is asked for: the others get empty boxes.
      std::vector<TnBox> boxes(desc.num_outputs, TnBox{});
      std::vector<TnTensor> outputs;
      for (std::uint32_t i = 0; i < desc.num_outputs; ++i) {
        outputs.push_back(tensor_view(i == output ? bytes.data() : nullptr,
                                      reference_dtype(desc.dtypes[desc.num_read() + i]), desc.dims[desc.num_read() + i],
                                      row_format(), TN_MEMORY_HOST));
      }
      boxes[output] = box;
      const TnReference call{TN_HEADER(TnReference), desc.num_inputs, desc.num_outputs, 0, &desc.attrs,
                             input_views.data(),     outputs.data(),  boxes.data()};
      clear_failure();
      TENON_RETURN_IF_ERROR(
          take_failure(op.op->reference(op.host, op.op, &call), fmt::format("op {}: reference", desc.op_id)));
      for (std::int64_t e = 0; e < elements; ++e) {
        sample.expected.push_back(load_element(bytes.data(), dtype, e));
      }
      if (output < desc.epilogues.size() && !desc.epilogues[output].empty()) {
        std::vector<float> values(sample.expected.begin(), sample.expected.end());
        std::vector<std::vector<float>> extra;
        std::vector<const float*> operands{values.data()};
        for (std::uint32_t i = 0; i < desc.num_extra; ++i) {
          extra.push_back(box_of(input_views[desc.num_inputs + i], box));
          operands.push_back(extra.back().data());
        }
        evaluate_f32(desc.epilogues[output], operands, values.data(), elements);
        sample.expected.assign(values.begin(), values.end());
      }
      round_to(desc.dtypes[desc.num_read() + output], &sample.expected);
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

Result<TnTolerance> tolerance_of(const OpRef& op, const Attrs& attrs, std::int32_t dtype) {
  TnTolerance tolerance{0, 0};
  if (op.op->tolerance != nullptr) {
    clear_failure();
    TENON_RETURN_IF_ERROR(take_failure(op.op->tolerance(op.host, op.op, &attrs, dtype, &tolerance),
                                       fmt::format("op {}: tolerance", op.op->id)));
    return tolerance;
  }
  if (dtype == TN_F32) return TnTolerance{1e-5, 1e-4};
  if (dtype == TN_F64) return TnTolerance{1e-12, 1e-10};
  if (dtype == TN_F16) return TnTolerance{1e-3, 1e-2};
  if (dtype == TN_BF16) return TnTolerance{1e-2, 5e-2};
  // One step of the last place, as results are rounded to it.
  if (dtype == TN_F8E4M3FN || dtype == TN_F8E4M3FNUZ) return TnTolerance{2e-3, 0.13};
  if (dtype == TN_F8E5M2 || dtype == TN_F8E5M2FNUZ) return TnTolerance{2e-5, 0.26};
  if (dtype == TN_F4E2M1) return TnTolerance{0.5, 0.5};
  if (dtype == TN_F8E8M0) return TnTolerance{0, 1};
  return tolerance;
}

}  // namespace tenon
