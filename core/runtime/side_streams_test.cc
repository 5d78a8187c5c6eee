// Plans on several streams: in which order a device is told what. The device is one that writes it down.
#include "core/runtime/side_streams.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/device/testing/forwarding_device.h"
#include "core/runtime/test_plugin.h"

namespace tenon {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder's tests

using Journal = std::vector<std::string>;

/// Streams are called s and events e, with numbers in the order in which they were made.
class NotingStream final : public Stream {
 public:
  NotingStream(Journal* device_journal, std::string own_name, std::unique_ptr<Stream> inner)
      : journal(device_journal), name(std::move(own_name)), inner_(std::move(inner)) {}
  void* handle() const override { return nullptr; }
  Status synchronize() override { return inner_->synchronize(); }
  Status wait_for(const Event& event) override;

  Journal* journal;
  std::string name;

 private:
  std::unique_ptr<Stream> inner_;
};

class NotingEvent final : public Event {
 public:
  explicit NotingEvent(int own_number) : number(own_number) {}
  Status record(Stream& stream) override {
    auto& own = static_cast<NotingStream&>(stream);
    own.journal->push_back(own.name + " records e" + std::to_string(number));
    return {};
  }
  Status wait() override { return {}; }
  Result<double> elapsed_ms(const Event&) const override { return 0.0; }
  int number;
};

Status NotingStream::wait_for(const Event& event) {
  journal->push_back(name + " waits for e" + std::to_string(static_cast<const NotingEvent&>(event).number));
  return {};
}

class NotingDevice final : public ForwardingDevice {
 public:
  Result<std::unique_ptr<Stream>> create_stream() override {
    TENON_ASSIGN(std::unique_ptr<Stream> inner, cpu_->create_stream());
    return std::unique_ptr<Stream>(new NotingStream(&journal, "s" + std::to_string(streams_made++), std::move(inner)));
  }
  Result<std::unique_ptr<Event>> create_event() override {
    return std::unique_ptr<Event>(new NotingEvent(events_made++));
  }
  Status copy_strided(void* to, const std::int64_t* to_strides, const void* from, const std::int64_t* from_strides,
                      const TnDims& dims, std::size_t element_bytes, Stream& stream) override {
    journal.push_back(static_cast<NotingStream&>(stream).name + " copies");
    return ForwardingDevice::copy_strided(to, to_strides, from, from_strides, dims, element_bytes, stream);
  }
  void prepare_exec(Stream& stream, TnExec* exec) override {
    ForwardingDevice::prepare_exec(stream, exec);
    exec->stream = &stream;  // kernels of the tests pass it on to nobody
  }

  Journal journal;
  int streams_made = 0, events_made = 0;
};

/// Of a run: what was told to the device, with the layers among it.
Journal run(NotingDevice* device, SideStreams* side, const StreamOrder& order, Stream& main, int failing = -1,
            Status* status = nullptr) {
  device->journal.clear();
  const Status done = side->run(*device, order, main, [&](std::size_t layer, const TnExec& exec) {
    const auto& stream = *static_cast<const NotingStream*>(static_cast<Stream*>(exec.stream));
    device->journal.push_back(stream.name + " runs " + std::to_string(layer));
    return static_cast<int>(layer) == failing ? Status(Code::kDevice, "the moon is full") : Status();
  });
  if (status != nullptr) *status = done;
  return device->journal;
}

StreamOrder order_of(const std::vector<int>& streams, const std::vector<std::vector<std::size_t>>& needs) {
  return {streams, [&](std::size_t earlier, std::size_t later) {
            return std::count(needs[later].begin(), needs[later].end(), earlier) != 0;
          }};
}

TEST(SideStreams, WaitsStandBeforeTheLayersAndRecordsAfterThem) {
  NotingDevice device;
  const auto main = device.create_stream().value();
  const StreamOrder diamond = order_of({0, 1, 0, 0}, {{}, {0}, {0}, {1, 2}});
  SideStreams side;
  ASSERT_TRUE(side.create(device, diamond).ok());
  EXPECT_EQ(device.streams_made, 2);
  EXPECT_EQ(device.events_made, 3) << "of the two layers that others wait for, and one for the begin";
  const Journal expected = {"s0 runs 0",     "s0 records e1", "s1 waits for e1", "s1 runs 1",
                            "s1 records e2", "s0 runs 2",     "s0 waits for e2", "s0 runs 3"};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(&device, &side, diamond, *main), expected);
}

TEST(SideStreams, ForksBeforeAndJoinsAfterAllLayers) {
  NotingDevice device;
  const auto main = device.create_stream().value();
  const StreamOrder apart = order_of({0, 1}, {{}, {}});
  SideStreams side;
  ASSERT_TRUE(side.create(device, apart).ok());
  EXPECT_EQ(run(&device, &side, apart, *main), (Journal{"s0 records e0", "s1 waits for e0", "s0 runs 0", "s1 runs 1",
                                                        "s1 records e1", "s0 waits for e1"}));
}

TEST(SideStreams, AfterAFailureTheMainStreamWaitsForTheOthers) {
  NotingDevice device;
  const auto main = device.create_stream().value();
  const StreamOrder apart = order_of({0, 1, 2, 1}, {{}, {}, {}, {}});
  SideStreams side;
  ASSERT_TRUE(side.create(device, apart).ok());
  Status status;
  const Journal journal = run(&device, &side, apart, *main, 2, &status);
  EXPECT_EQ(status.message(), "the moon is full");
  const Journal end(journal.end() - 5, journal.end());
  EXPECT_EQ(end, (Journal{"s2 runs 2", "s1 records e0", "s0 waits for e0", "s2 records e0", "s0 waits for e0"}));
}

TEST(SideStreams, OneStreamTakesNothing) {
  NotingDevice device;
  SideStreams side;
  ASSERT_TRUE(side.create(device, StreamOrder()).ok());
  EXPECT_EQ(device.streams_made + device.events_made, 0);
}

/// y = 2 x + 3 x + x, whose first two branches are on streams of their own.
class SeveralStreams : public ::testing::Test {
 protected:
  Plan plan(const std::string& kernel = "test.affine.packed") {
    PlanBuilder builder(*device_);
    const std::vector<std::int64_t> dims = {2, 3};
    const std::uint32_t x = builder.input("x", dims);
    std::vector<std::uint32_t> scaled;
    for (const auto& [name, factor, stream] : {std::tuple{"double", 2.f, 1}, std::tuple{"triple", 3.f, 2}}) {
      const std::uint32_t w = builder.constant(std::string(name) + ".w", dims, std::vector<float>(6, factor));
      scaled.push_back(builder.inner(name, dims));
      builder.node(name, "test.affine/1", kernel, {x, w}, scaled.back()).stream = stream;
    }
    const std::uint32_t sum = builder.inner("sum", dims);
    builder.node("sum", "test.add/1", "test.add.plain", {scaled[0], scaled[1]}, sum);
    builder.node("y", "test.add/1", "test.add.plain", {sum, x}, builder.output("y", dims));
    return builder.plan;
  }
  std::shared_ptr<ExecutionContext> context(const Plan& plan) {
    EngineOptions options{device_, registry_with(all_plugins())};
    engine_ = load(plan, options).value();
    return engine_->create_context().value();
  }

  std::shared_ptr<NotingDevice> device_ = std::make_shared<NotingDevice>();
  std::shared_ptr<Engine> engine_;
  std::vector<float> x_ = {0, 1, 2, 3, 4, 5};
  std::vector<float> y_ = std::vector<float>(6, -1);
};

TEST_F(SeveralStreams, BranchesBeginAfterInputsWereGatheredAndEndBeforeOutputsAreScattered) {
  const auto c = context(plan());
  std::vector<float> wide(12, 0), out(12, -1);
  for (std::size_t i = 0; i < 6; ++i) wide[2 * i] = x_[i];
  const std::int64_t strides[] = {6, 2};
  ASSERT_TRUE(c->set_tensor("x", wide.data(), strides).ok());
  ASSERT_TRUE(c->set_tensor("y", out.data(), strides).ok());
  device_->journal.clear();
  ASSERT_TRUE(c->execute().ok());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(out[2 * i], 6 * x_[i]);
  const Journal& journal = device_->journal;
  ASSERT_EQ(journal.size(), 9u);
  const std::string main = journal.front().substr(0, journal.front().find(' '));
  EXPECT_EQ(journal.front(), main + " copies");
  EXPECT_EQ(journal[1], main + " records e0");
  for (std::size_t i : {2u, 3u}) EXPECT_EQ(journal[i].substr(journal[i].find(' ')), " waits for e0");
  for (std::size_t i : {6u, 7u}) EXPECT_EQ(journal[i].substr(0, journal[i].find(" e")), main + " waits for");
  EXPECT_EQ(journal.back(), main + " copies");
}

TEST_F(SeveralStreams, EachStreamHasAWorkspaceOfItsOwn) {
  const Plan several = plan();
  Plan one = several;
  for (PlanNode& node : one.nodes) node.stream = 0;
  const auto scratch = [&](const Plan& plan) {
    context(plan);
    return engine_->scratch_bytes();
  };
  EXPECT_EQ(scratch(several), scratch(one) + 256) << "both kernels want less than 256 bytes";
}

TEST_F(SeveralStreams, ProfilesRunLayerByLayerOnOneStream) {
  const auto c = context(plan());
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  device_->journal.clear();
  const auto times = c->profile();
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(times->size(), 4u);
  EXPECT_EQ(y_[5], 30);
  for (const std::string& line : device_->journal) EXPECT_EQ(line.find("waits"), std::string::npos) << line;
}

TEST_F(SeveralStreams, AKernelsFailureNamesItsLayer) {
  const auto c = context(plan("test.affine.failing"));
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  const Status status = c->execute();
  EXPECT_EQ(status.code(), Code::kDevice);
  EXPECT_NE(status.message().find("layer 'double'"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace tenon
