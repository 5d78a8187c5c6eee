/* Tenon's public C API: the only symbols that libtenon exports. <tenon/tenon.hpp> is the same in C++.
 *
 * Objects are reference-counted handles: every TnX* that a function gives belongs to the caller, who releases it with
 * tn_x_release; release accepts NULL. What an object needs it keeps alive itself, so any order of release is safe.
 * Functions answer a TnStatus; for anything but 0 tn_last_error() tells the calling thread why. Strings are UTF-8 and,
 * unless said otherwise, stay valid as long as the object that gave them is neither changed nor released.
 * Threads: builders, networks, configs and contexts are used by one thread at a time, each; everything else is
 * thread-safe. A Logger or ErrorRecorder callback may be called from any thread. */
#ifndef TENON_C_TENON_H
#define TENON_C_TENON_H

#include <stddef.h>
#include <stdint.h>

#include "../plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_API __attribute__((visibility("default")))

struct TnPlugin;
typedef struct TnLibrary TnLibrary; /* registry, logger, recorder, allocator: what everything else starts from */
typedef struct TnNetwork TnNetwork;
typedef struct TnBuilderConfig TnBuilderConfig;
typedef struct TnTimingCache TnTimingCache;
typedef struct TnBuildResult TnBuildResult; /* engine bytes and report */
typedef struct TnEngine TnEngine;
typedef struct TnContext TnContext;
typedef struct TnText TnText; /* text that a function made */

/* --- errors and text --- */

/* Why the last failing call of this thread failed; "" if none did. Valid until the thread's next call. */
TENON_API const char* tn_last_error(void);
TENON_API const char* tn_version(void); /* "0.1.0" */
TENON_API const char* tn_text_data(const TnText* text);
TENON_API size_t tn_text_size(const TnText* text);
TENON_API void tn_text_release(TnText* text);

/* --- library: one registry of plugins with its logger --- */

typedef void (*TnLogFn)(void* context, int32_t severity /* TN_LOG_* */, const char* message);
typedef void (*TnErrorFn)(void* context, TnStatus code, const char* message);
typedef struct TnLibraryOptions {
  uint32_t struct_size;
  int32_t log_threshold; /* least important TN_LOG_* wanted */
  TnLogFn log;           /* NULL: nothing is logged */
  void* log_context;
  TnErrorFn record_error; /* NULL: failures go to the logger */
  void* error_context;
  /* The caller's memory for the CPU device; both or none. */
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  void (*free)(void* context, void* memory);
  void* allocator_context; /* of all four */
  /* The caller's memory for GPUs, aligned to at least 256 bytes; both or none. */
  void* (*allocate_cuda)(void* context, int32_t ordinal, size_t bytes);
  void (*free_cuda)(void* context, int32_t ordinal, void* memory);
} TnLibraryOptions;

/* An empty registry. `options` may be NULL. Callbacks and contexts outlive everything made from the library. */
TENON_API TnStatus tn_library_create(const TnLibraryOptions* options, TnLibrary** out);
TENON_API void tn_library_release(TnLibrary* library);
/* Loads one plugin file; all or nothing. */
TENON_API TnStatus tn_library_load_plugin(TnLibrary* library, const char* path);
/* Registers a plugin that is linked into the program. */
TENON_API TnStatus tn_library_add_plugin(TnLibrary* library, const struct TnPlugin* plugin);
/* Loads every plugin of $TENON_PLUGIN_PATH and of the installation. A library that cannot be loaded is logged as a
 * warning and does not stop the others; *num_failed (may be NULL) counts them. */
TENON_API TnStatus tn_library_discover(TnLibrary* library, uint32_t* num_failed);
TENON_API TnStatus tn_library_unload_plugin(TnLibrary* library, const char* plugin_id);
/* Everything registered, as JSON: plugins[] {id, version, path, ops[], kernels[], fusions[], importers[]},
 * importers[] {id, suffixes, options[] {name, type, doc}}, rules[] {id, doc, mode always|candidate, plugin ("": the
 * core's own), pattern}, failed[]. */
TENON_API TnStatus tn_library_describe(const TnLibrary* library, TnText** json);

/* --- network --- */

typedef uint32_t TnTensorId;
#define TN_NO_TENSOR 0xFFFFFFFFu

TENON_API TnStatus tn_network_create(TnLibrary* library, TnNetwork** out);
TENON_API void tn_network_release(TnNetwork* network);
/* Reads a model file with the importer that fits it best, or the one named. options_json: {"key": "value"} or NULL.
 * files_json: {"weights": "path"} names further files by role, or NULL. A constant of the network with the name of one
 * of the model's inputs takes its place: importers that know of it (ONNX) fold what depends on it, such as shapes. */
TENON_API TnStatus tn_network_import(TnNetwork* network, const char* path, const char* importer,
                                     const char* options_json, const char* files_json);
TENON_API TnStatus tn_network_add_input(TnNetwork* network, const char* name, int32_t dtype, const TnDims* dims,
                                        TnTensorId* out);
/* A constant; the data (row-major, packed) is copied. */
TENON_API TnStatus tn_network_add_constant(TnNetwork* network, const char* name, int32_t dtype, const TnDims* dims,
                                           const void* data, size_t bytes, TnTensorId* out);
/* A layer of any registered op. attrs_json: {"axis": 1, "mode": "x", "pads": [1,1]} or NULL; TN_NO_TENSOR marks an
 * absent optional input. Writes num_outputs ids. */
TENON_API TnStatus tn_network_add_layer(TnNetwork* network, const char* op_id, const char* name, const char* attrs_json,
                                        const TnTensorId* inputs, uint32_t num_inputs, TnTensorId* outputs,
                                        uint32_t num_outputs);
TENON_API TnStatus tn_network_mark_output(TnNetwork* network, TnTensorId tensor);
TENON_API TnStatus tn_network_mark_output_by_name(TnNetwork* network, const char* name);
/* Gives an input other dims and infers everything again; used for batch and --shape. */
TENON_API TnStatus tn_network_set_input_dims(TnNetwork* network, const char* name, const TnDims* dims);
/* Lets the dims of an input vary at run time: its dims become opt, for which kernels are tuned, and a context may give
 * it any others from min to max (an optimisation profile). Set all inputs to their optimum before the first profile. */
TENON_API TnStatus tn_network_set_profile(TnNetwork* network, const char* name, const TnDims* min, const TnDims* opt,
                                          const TnDims* max);
TENON_API TnStatus tn_network_rename(TnNetwork* network, TnTensorId tensor, const char* name);
TENON_API TnStatus tn_network_describe_tensor(const TnNetwork* network, TnTensorId tensor, const char** name,
                                              int32_t* dtype, TnDims* dims);
/* Text that travels in the engine. get gives TN_NOTFOUND for an absent key. */
TENON_API TnStatus tn_network_set_metadata(TnNetwork* network, const char* key, const char* text);
TENON_API TnStatus tn_network_get_metadata(const TnNetwork* network, const char* key, const char** text);
/* Readable dump, one line a node. */
TENON_API TnStatus tn_network_dump(const TnNetwork* network, TnText** out);
/* JSON: inputs[], outputs[] {name, dims, dtype}, nodes[] {name, op, inputs[], outputs[], attrs}, parameters. */
TENON_API TnStatus tn_network_describe(const TnNetwork* network, TnText** json);

/* --- timing cache --- */

typedef struct TnCacheKey { /* frozen */
  uint8_t bytes[16];        /* big-endian: printed in this order */
} TnCacheKey;
typedef struct TnCacheValue { /* frozen */
  uint64_t tactic;            /* 2^64-1: invalid */
  float ms;                   /* negative or NaN: invalid */
  uint32_t reserved;
} TnCacheValue;

/* From serialized bytes, or empty (size 0). `device` as for the builder; NULL: "auto". */
TENON_API TnStatus tn_cache_create(TnLibrary* library, const char* device, int32_t threads, const void* bytes,
                                   size_t size, TnTimingCache** out);
/* Load and save: compiled code too, from and to the file `path`.code. */
TENON_API TnStatus tn_cache_load(TnLibrary* library, const char* device, int32_t threads, const char* path,
                                 int32_t strict, TnTimingCache** out);
TENON_API TnStatus tn_cache_save(const TnTimingCache* cache, const char* path);
TENON_API void tn_cache_release(TnTimingCache* cache);
TENON_API TnStatus tn_cache_serialize(const TnTimingCache* cache, TnText** out);
TENON_API TnCacheValue tn_cache_query(const TnTimingCache* cache, const TnCacheKey* key);
TENON_API size_t tn_cache_query_keys(const TnTimingCache* cache, TnCacheKey* out, size_t capacity);
TENON_API int32_t tn_cache_update(TnTimingCache* cache, const TnCacheKey* key, const TnCacheValue* value);
TENON_API int32_t tn_cache_combine(TnTimingCache* cache, const TnTimingCache* other, int32_t ignore_mismatch);
TENON_API void tn_cache_reset(TnTimingCache* cache);
/* choice_json: {key, layer, op, combo, kernel, tactic, params, ms, pinned}; key and tactic are needed. */
TENON_API TnStatus tn_cache_insert(TnTimingCache* cache, const char* choice_json);
TENON_API int32_t tn_cache_pin(TnTimingCache* cache, const TnCacheKey* key, int32_t pinned);
TENON_API int32_t tn_cache_erase(TnTimingCache* cache, const TnCacheKey* key);
/* JSON: choices[], measured[], graphs[] with the file's fields; if `layer` is not NULL, of that layer and no graphs.
 * code {pieces, bytes}: what kernels have compiled. */
TENON_API TnStatus tn_cache_describe(const TnTimingCache* cache, const char* layer, TnText** json);

/* --- build --- */

/* Keys and values of a config, as text: "device" cpu|auto; "threads" 2; "workspace" bytes; "precision"
 * fp32|tf32|bf16; "editable_timing_cache", "frozen_cache", "allow_nondeterministic", "retune" 0|1; "time_budget"
 * seconds; "tactic_sources" "+a,-b"; "disable_rule" id (repeatable); "verbosity" none|layer_names|detailed;
 * "on_fallback" warn|forbid|allow: when only an op's plain reference can run a layer; "journal" path of the crash
 * journal; "layer" JSON {match, kernel, combo, tactic, precision} (repeatable); "max_streams" streams on which
 * independent layers may run at once, where that is measured faster: 1 switches it off, 0 (the default) is 4 on a GPU
 * and 1 on the CPU. */
TENON_API TnStatus tn_config_create(TnBuilderConfig** out);
TENON_API void tn_config_release(TnBuilderConfig* config);
TENON_API TnStatus tn_config_set(TnBuilderConfig* config, const char* key, const char* value);
TENON_API TnStatus tn_config_set_cache(TnBuilderConfig* config, TnTimingCache* cache);
/* Called between measurements: layer i of n, tactic j of m, seconds so far and to go (below 0: unknown). A result other
 * than 0 cancels the build, which then fails with TN_CANCELLED and leaves a valid cache. */
typedef int32_t (*TnProgressFn)(void* context, int32_t layer, int32_t layers, int32_t tactic, int32_t tactics,
                                const char* name, double elapsed_s, double eta_s);
TENON_API TnStatus tn_config_set_progress(TnBuilderConfig* config, TnProgressFn progress, void* context);

/* Compiles the network, which is not changed. `config` may be NULL. */
TENON_API TnStatus tn_build(TnLibrary* library, const TnNetwork* network, const TnBuilderConfig* config,
                            TnBuildResult** out);
TENON_API void tn_build_release(TnBuildResult* result);
TENON_API const void* tn_build_engine_data(const TnBuildResult* result);
TENON_API size_t tn_build_engine_size(const TnBuildResult* result);
/* The build report as JSON; see docs/use.md. */
TENON_API const char* tn_build_report(const TnBuildResult* result);
/* Every candidate of a layer of the report or node of the network, as JSON: node, candidates[] {kernel, combo, tactic,
 * tactic_hash, ms, status, reason}. TN_NOTFOUND lists near names. */
TENON_API TnStatus tn_explain(TnLibrary* library, const TnNetwork* network, const TnBuilderConfig* config,
                              const char* name, TnText** json);
/* Runs every node of the network by its plain reference on the host. inputs: row-major data, one per network input. */
typedef struct TnReferenceRun TnReferenceRun;
TENON_API TnStatus tn_reference_run(const TnNetwork* network, const void* const* inputs, uint32_t num_inputs,
                                    TnReferenceRun** out);
TENON_API void tn_reference_release(TnReferenceRun* run);
/* Names of the values that were computed, in the order of execution. */
TENON_API uint32_t tn_reference_num_values(const TnReferenceRun* run);
TENON_API TnStatus tn_reference_value(const TnReferenceRun* run, uint32_t index, const char** name, TnTensor* tensor);

/* --- engine and context --- */

TENON_API TnStatus tn_engine_load(TnLibrary* library, const char* path, const char* device, int32_t threads,
                                  TnEngine** out);
/* From memory, which is copied. */
TENON_API TnStatus tn_engine_create(TnLibrary* library, const void* bytes, size_t size, const char* device,
                                    int32_t threads, TnEngine** out);
TENON_API void tn_engine_release(TnEngine* engine);
TENON_API uint32_t tn_engine_num_inputs(const TnEngine* engine);
TENON_API uint32_t tn_engine_num_outputs(const TnEngine* engine);
TENON_API TnStatus tn_engine_describe_input(const TnEngine* engine, uint32_t index, const char** name, int32_t* dtype,
                                            TnDims* dims);
TENON_API TnStatus tn_engine_describe_output(const TnEngine* engine, uint32_t index, const char** name, int32_t* dtype,
                                             TnDims* dims);
/* The least and the largest dims that an input or output may have; both are its dims if they do not vary. Of an output
 * whose size depends on data the largest are a bound, and the least are 0. */
TENON_API TnStatus tn_engine_describe_profile(const TnEngine* engine, const char* name, TnDims* min, TnDims* max);
TENON_API TnStatus tn_engine_get_metadata(const TnEngine* engine, const char* key, const char** text);
TENON_API uint64_t tn_engine_scratch_bytes(const TnEngine* engine);
TENON_API const char* tn_engine_device(const TnEngine* engine); /* "cpu (AMD EPYC, 2 threads)" */
/* Memory of the engine's device for tensors and scratch, 256-aligned, and copies between it and the host, which are
 * done on return. A context takes any other memory too: on a GPU host memory is copied at each run, GPU memory is not.
 */
TENON_API TnStatus tn_engine_allocate(TnEngine* engine, uint64_t bytes, void** out);
TENON_API void tn_engine_free(TnEngine* engine, void* memory);
TENON_API TnStatus tn_engine_upload(TnEngine* engine, void* device, const void* host, uint64_t bytes);
TENON_API TnStatus tn_engine_download(TnEngine* engine, void* host, const void* device, uint64_t bytes);

/* What an engine file says, without its plugins: format "json" or "oneline" for its layers (layer -1: all), "ends" for
 * inputs[] and outputs[] {name, dtype, dims, min, max} as JSON, "tensors" for tensors[] {name, dtype, dims, format,
 * storage} that it holds, weights included, and removed[] {name, layer}, tensors of the network that fusion left out.
 */
TENON_API TnStatus tn_inspect_file(const char* path, const char* format, TnText** out);
TENON_API uint32_t tn_engine_num_layers(const TnEngine* engine);
TENON_API TnStatus tn_engine_inspect(const TnEngine* engine, int32_t layer, const char* format, TnText** out);

TENON_API TnStatus tn_context_create(TnEngine* engine, int32_t own_scratch, TnContext** out);
TENON_API void tn_context_release(TnContext* context);
/* Other dims for an input, inside its profile: set those of all inputs first, then the memory of those inputs and
 * outputs whose dims have changed. The first call after it that needs shapes configures the kernels for these dims; the
 * engine keeps what was made for the last few. */
TENON_API TnStatus tn_context_set_input_dims(TnContext* context, const char* name, const TnDims* dims);
/* The dims of an input or output for the present dims of the inputs; of an output whose size depends on data, those of
 * the latest run, or the largest before it. */
TENON_API TnStatus tn_context_describe_dims(TnContext* context, const char* name, TnDims* dims);
/* The caller's memory for an input or output; strides in elements, or NULL for packed row-major. */
TENON_API TnStatus tn_context_set_tensor(TnContext* context, const char* name, void* data, const int64_t* strides);
/* Memory for an output whose size is known only while it runs: asked for in each run, just before a layer writes it;
 * NULL from it ends the run with TN_NOMEM. In place of tn_context_set_tensor, which needs memory for the largest dims.
 * `allocate` NULL takes it back. */
typedef void* (*TnAllocateOutputFn)(void* context, const char* name, uint64_t bytes, const TnDims* dims);
TENON_API TnStatus tn_context_set_output_allocator(TnContext* context, const char* name, TnAllocateOutputFn allocate,
                                                   void* allocate_context);
TENON_API TnStatus tn_context_set_scratch(TnContext* context, void* memory, uint64_t bytes);
/* Failures of this context go here instead of to the library's recorder. NULL takes it back. */
TENON_API TnStatus tn_context_set_recorder(TnContext* context, TnErrorFn record_error, void* error_context);
/* Shows tensors of each run, without changing plan, kernels, formats or memory: `num_names` of them, or with 0 all but
 * weights. `observe` is called inside enqueue, on its thread: for inputs first, for what a layer writes as soon as it
 * has run, for constants last. The tensor is row-major and packed on the host, to be read during the call, with the
 * dims of this run; small floats but f16 come as f32 (so do f32 tensors that are kept in bf16), smaller integers in 8
 * bits. Layers are launched one by one meanwhile, and enqueue waits. `observe` NULL ends it. TN_NOTFOUND with similar
 * names for what is no tensor; TN_DECLINED for a tensor of the network that fusion removed: an engine in which it is
 * marked as an output computes it; TN_INVALID if the engine keeps no names (config verbosity none). */
typedef void (*TnObserveFn)(void* context, const char* name, const TnTensor* tensor);
TENON_API TnStatus tn_context_set_observer(TnContext* context, const char* const* names, uint32_t num_names,
                                           TnObserveFn observe, void* observe_context);
/* Whether the launches of a run on a GPU are captured once and replayed as one CUDA graph; 1 at first. */
TENON_API TnStatus tn_context_use_graph(TnContext* context, int32_t use);
TENON_API TnStatus tn_context_enqueue(TnContext* context, void* stream);
TENON_API TnStatus tn_context_execute(TnContext* context);
/* JSON: [{name, ms, launches}], one run, each layer timed; launches: how many kernels, copies and fills it is in the
 * CUDA graph of a run, absent where there is none. */
TENON_API TnStatus tn_context_profile(TnContext* context, TnText** json);

#ifdef __cplusplus
}
#endif
#endif /* TENON_C_TENON_H */
