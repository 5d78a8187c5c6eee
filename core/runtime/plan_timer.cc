#include "core/runtime/plan_timer.h"

#include <algorithm>
#include <cmath>

#include "core/plan/plan_file.h"
#include "core/site/run_once.h"

namespace tenon {
namespace {

// Long against the clock's resolution and the start of a recorded graph, short against what disturbs a machine.
constexpr double kCallMs = 2;
constexpr std::uint64_t kSeed = 1;

/// Normal numbers for floating inputs, small integers for others.
Result<std::vector<std::shared_ptr<const HostTensor>>> random_inputs(const Engine& engine) {
  SiteDesc desc;
  for (const IoInfo& input : engine.inputs()) {
    desc.dims.push_back(input.dims);
    desc.dtypes.push_back(input.dtype);
    desc.constants.push_back(nullptr);
  }
  desc.num_inputs = static_cast<std::uint32_t>(desc.dims.size());
  const TnOp no_generator{};
  OpRef op;
  op.op = &no_generator;
  return make_inputs(*Site::create(std::move(desc), engine.device()), op, kSeed);
}

class TimedPlan {
 public:
  Status load(const Plan& plan, const EngineOptions& options) {
    TENON_ASSIGN(std::vector<std::uint8_t> file, write_plan(plan));
    const auto bytes = std::make_shared<const std::vector<std::uint8_t>>(std::move(file));
    TENON_ASSIGN(engine_, Engine::load(bytes->data(), bytes->size(), bytes, options));
    TENON_ASSIGN(context_, engine_->create_context());
    TENON_ASSIGN(stream_, options.device->create_stream());
    TENON_ASSIGN(start_, options.device->create_event());
    TENON_ASSIGN(end_, options.device->create_event());
    TENON_ASSIGN(const auto inputs, random_inputs(*engine_));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      TENON_ASSIGN(void* memory, bind(options.device, engine_->inputs()[i]));
      TENON_RETURN_IF_ERROR(options.device->copy_to_device(memory, inputs[i]->data(), inputs[i]->bytes(), *stream_));
    }
    for (const IoInfo& output : engine_->outputs()) TENON_RETURN_IF_ERROR(bind(options.device, output).status());
    TENON_RETURN_IF_ERROR(run(1).status());
    TENON_ASSIGN(const double once, run(1));
    repeats_ = static_cast<int>(std::clamp(std::ceil(kCallMs / std::max(once, 1e-3)), 1.0, 1000.0));
    return {};
  }

  Result<double> run() { return run(repeats_); }

 private:
  Result<void*> bind(const std::shared_ptr<Device>& device, const IoInfo& io) {
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(io.dtype, io.dims, row_format()));
    TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, std::max<std::uint64_t>(bytes, 1)));
    buffers_.push_back(std::move(buffer));
    TENON_RETURN_IF_ERROR(context_->set_tensor(io.name, buffers_.back().data()));
    return buffers_.back().data();
  }

  Result<double> run(int repeats) {
    TENON_RETURN_IF_ERROR(start_->record(*stream_));
    for (int i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(context_->enqueue(stream_->handle()));
    TENON_RETURN_IF_ERROR(end_->record(*stream_));
    TENON_RETURN_IF_ERROR(stream_->synchronize());
    TENON_ASSIGN(const double ms, end_->elapsed_ms(*start_));
    return ms / repeats;
  }

  // The context goes before what it uses.
  std::shared_ptr<Engine> engine_;
  std::vector<DeviceBuffer> buffers_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> start_, end_;
  std::shared_ptr<ExecutionContext> context_;
  int repeats_ = 1;
};

}  // namespace

Result<std::function<Result<double>()>> make_plan_timer(const Plan& plan, const EngineOptions& options) {
  const auto timer = std::make_shared<TimedPlan>();
  TENON_RETURN_IF_ERROR(timer->load(plan, options));
  return std::function<Result<double>()>([timer] { return timer->run(); });
}

}  // namespace tenon
