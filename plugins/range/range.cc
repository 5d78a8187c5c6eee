// tenon.range/1: numbers at equal distances.
#include <cmath>
#include <tenon/sdk/plugin.hpp>
#include <type_traits>

#include "plugins/common/integers.h"

namespace tenon::plugins {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;

// max(ceil((limit - start) / delta), 0): exactly for integers, in double for floats.
template <class T>
int64_t range_count(T start, T limit, T delta) {
  if (delta == T(0)) throw Invalid("input 'delta': expected anything but 0, found 0");
  double count;
  if constexpr (std::is_integral_v<T>) {
    const bool up = delta > T(0);
    const auto wide = [](T value) { return static_cast<uint64_t>(value); };
    const uint64_t distance =
        up ? (limit > start ? wide(limit) - wide(start) : 0) : (limit < start ? wide(start) - wide(limit) : 0);
    const uint64_t step = up ? wide(delta) : uint64_t{0} - wide(delta);
    count = static_cast<double>(distance / step) + (distance % step != 0 ? 1.0 : 0.0);
  } else {
    count = std::ceil(static_cast<double>(limit - start) / static_cast<double>(delta));
  }
  if (!(count <= static_cast<double>(kMostElements))) {
    throw Invalid(text("from ", start, " to ", limit, " by ", delta, " there are ", count,
                       " numbers; expected at most ", kMostElements));
  }
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

void range_infer(const Infer& question) {
  const char* names[] = {"start", "limit", "delta"};
  const int32_t dtype = question.input(0).dtype();
  for (int n = 0; n < 3; ++n) {
    const Tensor x = question.input(n);
    if (x.dtype() != dtype || x.elements() != 1) {
      throw Invalid(text("input '", names[n], "': expected one ", dtype_name(dtype), ", found ", dtype_name(x.dtype()),
                         to_text(x.dims())));
    }
    if (!x.has_data()) {
      throw Invalid(text("input '", names[n], "': its contents must be known when the network is built, because they ",
                         "decide the shape of the output; they are computed at run time"));
    }
  }
  visit_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    question.output(
        0, dtype,
        Dims{range_count(*question.input(0).data<T>(), *question.input(1).data<T>(), *question.input(2).data<T>())});
  });
}

void range_reference(const Reference& call) {
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T start = *call.input(0).data<T>(), delta = *call.input(2).data<T>();
    call.fill<T>(0, [&](const int64_t*, int64_t n) {
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(n) * static_cast<uint64_t>(delta));
      } else {
        return static_cast<T>(static_cast<double>(start) + static_cast<double>(n) * static_cast<double>(delta));
      }
    });
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.range", "1", "Apache-2.0",
             tenon::op("tenon.range/1")
                 .doc("y[i] = start + i * delta, with max(ceil((limit - start) / delta), 0) elements (ONNX Range-11)")
                 .input("start", "one number")
                 .host_value()
                 .input("limit", "one number of the same dtype, which is not reached")
                 .host_value()
                 .input("delta", "one number of the same dtype, not 0")
                 .host_value()
                 .output("y", "rank 1")
                 .infer(tenon::plugins::range_infer)
                 .reference(tenon::plugins::range_reference)
                 .tolerance(0, 0))
