// Somebody else's kernel for tenon.matmul/1, in three variants:
//   ACME_PLAIN   correct; three loops that beat kernels with a set-up on the smallest matrices
//   ACME_WRONG   fast and wrong: the result is zero
//   ACME_CRASH   ends the process in enqueue
#include <algorithm>
#include <cstdlib>
#include <tenon/sdk/plugin.hpp>

namespace {

/// y[m,n] = a[m,k] * b[k,n], all packed.
[[maybe_unused]] void multiply(const float* a, const float* b, float* y, int64_t m, int64_t k, int64_t n) {
  for (int64_t row = 0; row < m; ++row) {
    float* sums = y + row * n;
    std::fill(sums, sums + n, 0.0f);
    for (int64_t step = 0; step < k; ++step) {
      const float factor = a[row * k + step];
      for (int64_t column = 0; column < n; ++column) sums[column] += factor * b[step * n + column];
    }
  }
}

class AcmeMatmul final : public tenon::IPlugin {
 public:
  void enqueue(const tenon::Exec&, [[maybe_unused]] const TnTensor* inputs, const TnTensor* outputs) const override {
    float* y = static_cast<float*>(outputs[0].data);
#if defined(ACME_PLAIN)
    const TnDims& a = inputs[0].dims;
    multiply(static_cast<const float*>(inputs[0].data), static_cast<const float*>(inputs[1].data), y, a.d[0], a.d[1],
             outputs[0].dims.d[1]);
#elif defined(ACME_WRONG)
    std::fill(y, y + outputs[0].dims.d[0] * outputs[0].dims.d[1], 0.0f);
#elif defined(ACME_CRASH)
    y[0] = 0;
    std::abort();
#endif
  }
};

void supports(const tenon::Site& site) {
  if (site.max_dims(0).rank != 2 || site.max_dims(1).rank != 2) throw tenon::Declined("only plain matrices");
  if (site.attrs().flag("transpose_a") || site.attrs().flag("transpose_b")) throw tenon::Declined("transposes nothing");
}

int listings = 0;

void list_tactics(const tenon::Site&, const tenon::Combo&, tenon::Tactics& tactics) {
  ++listings;
  tactics.add("");
}

}  // namespace

// For tests: how often the host asked for tactics.
extern "C" __attribute__((visibility("default"))) int acme_listings() { return listings; }

TENON_PLUGIN("acme.matmul_" ACME_VARIANT, "1.0", "Apache-2.0",
             tenon::kernel<AcmeMatmul>("tenon.matmul/1", "acme.matmul." ACME_VARIANT ".f32")
                 .combo({tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                 .supports(supports)
                 .tactics(list_tactics)
                 .deterministic())
