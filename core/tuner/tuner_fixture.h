// What the tuner's tests share: a small linked plugin with kernels that are fast, slow, wrong, or refuse, and devices
// that fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/device/testing/forwarding_device.h"
#include "core/tuner/cache_test_util.h"
#include "core/tuner/tuner.h"
#include "core/tuner/tuner_test_plugin.h"

namespace tenon {

/// The host's processor as a device that a kernel can break.
class FragileDevice final : public ForwardingDevice {
 public:
  bool broken() override { return device_is_broken; }
};

/// Gives no more than 1 MiB at a time.
class SmallAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    return bytes > (1u << 20) ? nullptr
                              : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  void free(void* memory) override { std::free(memory); }
};

class TunerTest : public ::testing::Test {
 protected:
  TunerTest() {
    behaviours().clear();
    device_is_broken = false;
    behaviours()["test.twice.fast tile=8"].spin_us = 40;
    behaviours()["test.twice.slow "].spin_us = 200;
    behaviours()["test.twice.wrong "].factor = 2.5f;
    fast_kernel.revision = slow_kernel.revision = wrong_kernel.revision = added_kernel.revision = 1;
    EXPECT_TRUE(registry_->add_linked(&main_plugin).ok());
  }

  TuneSite make_site(const std::string& layer = "double1", std::uint32_t flags = 0) const {
    SiteDesc desc;
    desc.op_id = kOp;
    desc.dims = {make_dims({1000}), make_dims({1000})};
    desc.dtypes = {TN_F32, TN_F32};
    desc.num_inputs = desc.num_outputs = 1;
    desc.constants.resize(1);
    desc.flags = flags;
    TuneSite site;
    site.site = Site::create(std::move(desc), *device_);
    site.op = registry_->find_op(kOp);
    site.layer = layer;
    site.key = site.site->key(layer);
    site.enumeration = enumerate(*site.site, *registry_, enumerate_options_);
    return site;
  }

  Tuner make_tuner(TunerOptions options = {}) { return Tuner(device_, cache_, std::move(options), logger_); }

  /// Times and records the winner by time alone.
  TuneResult tune(Tuner* tuner, const TuneSite& site) {
    auto result = tuner->time_site(site, 1, 1);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    const auto chosen = result->fixed ? result->recorded : fastest_candidate(*result);
    EXPECT_TRUE(chosen.has_value());
    if (chosen) tuner->record_choice(site, *result, *chosen);
    return *result;
  }
  TuneResult tune(const TuneSite& site, TunerOptions options = {}) {
    Tuner tuner = make_tuner(std::move(options));
    TuneResult result = tune(&tuner, site);
    counts_ = tuner.counts();
    rejected_ = tuner.rejected();
    return result;
  }

  static std::size_t index_of(const TuneSite& site, const std::string& kernel, const std::string& params = "*") {
    for (std::size_t i = 0; i < site.enumeration.candidates.size(); ++i) {
      const Candidate& candidate = site.enumeration.candidates[i];
      if (candidate.kernel.kernel->name == kernel && (params == "*" || candidate.tactic.params == params)) return i;
    }
    ADD_FAILURE() << kernel;
    return 0;
  }

  static int total_runs() {
    int runs = 0;
    for (const auto& [key, behaviour] : behaviours()) runs += behaviour.runs;
    return runs;
  }

  RecordingLogger logger_;
  std::shared_ptr<Device> device_ = make_cpu_device({.threads = 1});
  std::shared_ptr<Registry> registry_ = Registry::create(logger_);
  std::shared_ptr<TimingCache> cache_ = std::make_shared<TimingCache>(device_->info().signature);
  EnumerateOptions enumerate_options_;
  TunerCounts counts_;
  std::vector<std::string> rejected_;
};

}  // namespace tenon
