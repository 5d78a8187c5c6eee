#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/handles.h"

using tenon::Code;
using tenon::Engine;
using tenon::EngineOptions;
using tenon::IoInfo;
using tenon::Plan;
using tenon::Result;
using tenon::Status;
using namespace tenon::api;

namespace {

Result<EngineOptions> engine_options(TnLibrary* library, const char* device, int32_t threads) {
  TENON_RETURN_IF_ERROR(need(library, "library"));
  LibraryState& state = *library->state;
  EngineOptions options;
  TENON_ASSIGN(options.device, state.device(device != nullptr ? device : "auto", threads));
  options.registry = state.registry;
  options.logger = &state.logger;
  options.recorder = state.recorder.get();
  return options;
}

TnEngine* wrap(TnLibrary* library, std::shared_ptr<Engine> engine, const tenon::DeviceInfo& device) {
  return new TnEngine{library->state, std::move(engine),
                      device.on_host() ? fmt::format("cpu ({}, {} threads)", device.name, device.threads)
                                       : fmt::format("cuda:{} ({})", device.ordinal, device.name)};
}

Status describe(const std::vector<IoInfo>& tensors, const std::vector<tenon::PlanIo>& names, const char* what,
                uint32_t index, const char** name, int32_t* dtype, TnDims* dims) {
  if (index >= tensors.size()) {
    return {Code::kInvalid, fmt::format("{} {} is out of range: there are {}", what, index, tensors.size())};
  }
  if (name != nullptr) *name = names[index].name.c_str();
  if (dtype != nullptr) *dtype = tensors[index].dtype;
  if (dims != nullptr) *dims = tensors[index].dims;
  return {};
}

Status inspect(const Plan& plan, int32_t layer, const char* format, TnText** out) {
  TENON_RETURN_IF_ERROR(need(out, "out"));
  TENON_RETURN_IF_ERROR(need(format, "format"));
  if (layer < 0 && std::strcmp(format, "ends") == 0) {
    *out = new TnText{inspect_ends(plan)};
    return {};
  }
  if (layer < 0 && std::strcmp(format, "tensors") == 0) {
    *out = new TnText{inspect_tensors(plan)};
    return {};
  }
  const bool json = std::strcmp(format, "json") == 0;
  if (!json && std::strcmp(format, "oneline") != 0) {
    return {Code::kInvalid, fmt::format("format \"{}\" is unknown; expected oneline or json", format)};
  }
  if (layer >= static_cast<int32_t>(plan.nodes.size())) {
    return {Code::kInvalid, fmt::format("layer {} is out of range: there are {}", layer, plan.nodes.size())};
  }
  const std::size_t index = static_cast<std::size_t>(layer);
  std::string text = layer < 0 ? (json ? inspect_json(plan) : inspect_oneline(plan))
                               : (json ? inspect_layer_json(plan, index) : inspect_layer_oneline(plan, index));
  *out = new TnText{std::move(text)};
  return {};
}

}  // namespace

extern "C" {

TnStatus tn_engine_load(TnLibrary* library, const char* path, const char* device, int32_t threads, TnEngine** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(path, "path"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_ASSIGN(const EngineOptions options, engine_options(library, device, threads));
    auto engine = Engine::load_file(path, options);
    if (!engine.ok()) return engine.status();  // reported by the engine
    *out = wrap(library, std::move(*engine), options.device->info());
    return {};
  });
}

TnStatus tn_engine_create(TnLibrary* library, const void* bytes, size_t size, const char* device, int32_t threads,
                          TnEngine** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(bytes, "bytes"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_ASSIGN(const EngineOptions options, engine_options(library, device, threads));
    // Constants are used where they lie, so the copy is aligned like a mapped file.
    std::shared_ptr<void> copy(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096), std::free);
    if (copy == nullptr) return {Code::kNoMemory, fmt::format("could not allocate {} bytes for the engine", size)};
    std::memcpy(copy.get(), bytes, size);
    auto engine = Engine::load(copy.get(), size, copy, options);
    if (!engine.ok()) return engine.status();  // reported by the engine
    *out = wrap(library, std::move(*engine), options.device->info());
    return {};
  });
}

void tn_engine_release(TnEngine* engine) { delete engine; }

uint32_t tn_engine_num_inputs(const TnEngine* engine) {
  return engine != nullptr ? static_cast<uint32_t>(engine->engine->plan().inputs.size()) : 0;
}
uint32_t tn_engine_num_outputs(const TnEngine* engine) {
  return engine != nullptr ? static_cast<uint32_t>(engine->engine->plan().outputs.size()) : 0;
}

TnStatus tn_engine_describe_input(const TnEngine* engine, uint32_t index, const char** name, int32_t* dtype,
                                  TnDims* dims) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    return describe(engine->engine->inputs(), engine->engine->plan().inputs, "input", index, name, dtype, dims);
  });
}

TnStatus tn_engine_describe_output(const TnEngine* engine, uint32_t index, const char** name, int32_t* dtype,
                                   TnDims* dims) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    return describe(engine->engine->outputs(), engine->engine->plan().outputs, "output", index, name, dtype, dims);
  });
}

TnStatus tn_engine_describe_profile(const TnEngine* engine, const char* name, TnDims* min, TnDims* max) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    std::vector<tenon::IoInfo> ends = engine->engine->inputs();
    for (tenon::IoInfo& output : engine->engine->outputs()) ends.push_back(std::move(output));
    for (const tenon::IoInfo& end : ends) {
      if (end.name != name) continue;
      if (min != nullptr) *min = end.min;
      if (max != nullptr) *max = end.max;
      return {};
    }
    return {Code::kNotFound, fmt::format("the engine has no input or output \"{}\"", name)};
  });
}

TnStatus tn_engine_get_metadata(const TnEngine* engine, const char* key, const char** text) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    TENON_RETURN_IF_ERROR(need(key, "key"));
    TENON_RETURN_IF_ERROR(need(text, "text"));
    const auto& metadata = engine->engine->plan().metadata;
    const auto found = metadata.find(key);
    if (found == metadata.end()) return {Code::kNotFound, fmt::format("the engine has no metadata \"{}\"", key)};
    *text = found->second.c_str();
    return {};
  });
}

uint64_t tn_engine_scratch_bytes(const TnEngine* engine) {
  return engine != nullptr ? engine->engine->scratch_bytes() : 0;
}
const char* tn_engine_device(const TnEngine* engine) { return engine != nullptr ? engine->device_text.c_str() : ""; }

TnStatus tn_inspect_file(const char* path, const char* format, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(path, "path"));
    TENON_ASSIGN(const auto file, tenon::map_file(path));
    const auto plan = tenon::read_plan(file->data, file->size, file);
    if (!plan.ok()) return plan.status().with_context(path);
    return inspect(*plan, -1, format, out);
  });
}

uint32_t tn_engine_num_layers(const TnEngine* engine) {
  return engine != nullptr ? static_cast<uint32_t>(engine->engine->plan().nodes.size()) : 0;
}

TnStatus tn_engine_inspect(const TnEngine* engine, int32_t layer, const char* format, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    return inspect(engine->engine->plan(), layer, format, out);
  });
}

TnStatus tn_engine_allocate(TnEngine* engine, uint64_t bytes, void** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_ASSIGN(*out, engine->engine->device().allocate(bytes));
    return {};
  });
}

void tn_engine_free(TnEngine* engine, void* memory) {
  if (engine != nullptr) engine->engine->device().free(memory);
}

TnStatus tn_engine_upload(TnEngine* engine, void* device, const void* host, uint64_t bytes) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    TENON_RETURN_IF_ERROR(need(device, "device"));
    TENON_RETURN_IF_ERROR(need(host, "host"));
    TENON_ASSIGN(const auto stream, engine->engine->device().create_stream());
    TENON_RETURN_IF_ERROR(engine->engine->device().copy_to_device(device, host, bytes, *stream));
    return stream->synchronize();
  });
}

TnStatus tn_engine_download(TnEngine* engine, void* host, const void* device, uint64_t bytes) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    TENON_RETURN_IF_ERROR(need(host, "host"));
    TENON_RETURN_IF_ERROR(need(device, "device"));
    TENON_ASSIGN(const auto stream, engine->engine->device().create_stream());
    TENON_RETURN_IF_ERROR(engine->engine->device().copy_to_host(host, device, bytes, *stream));
    return stream->synchronize();
  });
}

TnStatus tn_context_create(TnEngine* engine, int32_t own_scratch, TnContext** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(engine, "engine"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_ASSIGN(auto context, engine->engine->create_context(own_scratch != 0));
    *out = new TnContext{engine->library, nullptr, std::move(context)};
    return {};
  });
}

void tn_context_release(TnContext* context) { delete context; }

TnStatus tn_context_set_input_dims(TnContext* context, const char* name, const TnDims* dims) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    TENON_RETURN_IF_ERROR(need(dims, "dims"));
    return context->context->set_input_dims(name, *dims);
  });
}

TnStatus tn_context_describe_dims(TnContext* context, const char* name, TnDims* dims) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    TENON_RETURN_IF_ERROR(need(dims, "dims"));
    TENON_ASSIGN(*dims, context->context->dims(name));
    return {};
  });
}

TnStatus tn_context_set_tensor(TnContext* context, const char* name, void* data, const int64_t* strides) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    return context->context->set_tensor(name, data, strides);
  });
}

TnStatus tn_context_set_output_allocator(TnContext* context, const char* name, TnAllocateOutputFn allocate,
                                         void* allocate_context) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    tenon::ExecutionContext::OutputAllocator function;
    if (allocate != nullptr) {
      function = [=](const std::string& output, std::uint64_t bytes, const TnDims& dims) {
        return allocate(allocate_context, output.c_str(), bytes, &dims);
      };
    }
    return context->context->set_output_allocator(name, std::move(function));
  });
}

TnStatus tn_context_set_scratch(TnContext* context, void* memory, uint64_t bytes) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    return context->context->set_scratch(memory, bytes);
  });
}

TnStatus tn_context_set_recorder(TnContext* context, TnErrorFn record_error, void* error_context) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    auto recorder = record_error != nullptr ? std::make_unique<CallbackRecorder>(record_error, error_context) : nullptr;
    context->context->set_recorder(recorder != nullptr ? recorder.get() : context->library->recorder.get());
    context->recorder = std::move(recorder);
    return {};
  });
}

TnStatus tn_context_set_observer(TnContext* context, const char* const* names, uint32_t num_names, TnObserveFn observe,
                                 void* observe_context) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    std::vector<std::string> wanted;
    for (uint32_t i = 0; i < num_names; ++i) {
      TENON_RETURN_IF_ERROR(need(names, "names"));
      TENON_RETURN_IF_ERROR(need(names[i], "name"));
      wanted.emplace_back(names[i]);
    }
    tenon::ExecutionContext::Observer observer;
    if (observe != nullptr) {
      observer = [=](const std::string& name, const TnTensor& tensor) {
        observe(observe_context, name.c_str(), &tensor);
      };
    }
    return context->context->set_observer(wanted, std::move(observer));
  });
}

TnStatus tn_context_use_graph(TnContext* context, int32_t use) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    return context->context->use_graph(use != 0);
  });
}

TnStatus tn_context_enqueue(TnContext* context, void* stream) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    return context->context->enqueue(stream);
  });
}

TnStatus tn_context_execute(TnContext* context) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    return context->context->execute();
  });
}

TnStatus tn_context_profile(TnContext* context, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(context, "context"));
    TENON_RETURN_IF_ERROR(need(out, "json"));
    TENON_ASSIGN(const auto times, context->context->profile());
    nlohmann::json layers = nlohmann::json::array();
    for (const tenon::LayerTime& time : times) {
      layers.push_back({{"name", time.name}, {"ms", time.ms}});
      if (time.launches) layers.back()["launches"] = *time.launches;
    }
    *out = new TnText{layers.dump(2)};
    return {};
  });
}

}  // extern "C"
