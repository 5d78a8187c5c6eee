/* A complete small plugin in C11, built several times for the registry's tests. Each build sets SAMPLE_ID and
 * SAMPLE_NAME; the other macros give it a fault or another shape:
 *   SAMPLE_OP, SAMPLE_VERSION      other than "<SAMPLE_NAME>/1" and "1.0"
 *   SAMPLE_MAJOR, SAMPLE_NEEDED, SAMPLE_BUILT   ABI numbers
 *   SAMPLE_FAILS                   load fails with a reason after registering
 *   SAMPLE_SILENT                  load fails without a reason
 *   SAMPLE_BAD_KERNEL              registers a kernel without enqueue and goes on regardless */
#include <tenon/plugin/all.h>

#ifndef SAMPLE_OP
#define SAMPLE_OP SAMPLE_NAME "/1"
#endif
#ifndef SAMPLE_VERSION
#define SAMPLE_VERSION "1.0"
#endif
#ifndef SAMPLE_MAJOR
#define SAMPLE_MAJOR TN_ABI_MAJOR
#endif
#ifndef SAMPLE_NEEDED
#define SAMPLE_NEEDED 0
#endif
#ifndef SAMPLE_BUILT
#define SAMPLE_BUILT TN_ABI_MINOR_LATEST
#endif

/* Shared by all registries that have this library: loads minus unloads, so that tests see both happen. */
static int live;

static TnStatus infer(const TnHost* host, const TnOp* op, TnInfer* question) {
  (void)host;
  (void)op;
  question->outputs[0].dtype = question->inputs[0].dtype;
  question->outputs[0].dims = question->inputs[0].dims;
  return TN_OK;
}

static TnStatus reference(const TnHost* host, const TnOp* op, const TnReference* call) {
  (void)op;
  (void)call;
  return TN_FAIL(host, TN_INVALID, "the sample computes nothing");
}

static const void* op_interface(const TnOp* op, const char* id) {
  (void)op;
  (void)id;
  return &live;
}

static const TnParam alpha = {TN_HEADER(TnParam), TN_ATTR_F64, "alpha", 0, "0.5", "[0,1]", "weight"};
static const TnParam* const params[] = {&alpha};
static const TnPortSpec x = {TN_HEADER(TnPortSpec), 0, "x", "what is kept"};
static const TnPortSpec extra = {TN_HEADER(TnPortSpec), TN_PORT_OPTIONAL, "extra", "ignored"};
static const TnPortSpec y = {TN_HEADER(TnPortSpec), 0, "y", "the same"};
static const TnPortSpec* const inputs[] = {&x, &extra};
static const TnPortSpec* const outputs[] = {&y};
static const TnOp op = {.struct_size = TN_HEADER(TnOp),
                        .flags = TN_OP_PURE,
                        .id = SAMPLE_OP,
                        .doc = "y = x",
                        .params = params,
                        .num_params = 1,
                        .num_inputs = 2,
                        .num_outputs = 1,
                        .inputs = inputs,
                        .outputs = outputs,
                        .infer = infer,
                        .reference = reference,
                        .get_interface = op_interface};

static TnStatus configure(const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
  (void)host;
  (void)kernel;
  (void)config;
  *out = NULL;
  return TN_OK;
}

static const TnPort ports[] = {
    {TN_F32, 0, TN_ROW_INIT, 0, 64}, {TN_DTYPE_NONE, 0, {0}, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 64}};
static const TnAlias alias = {0, 0, TN_MAY_ALIAS, 0};
static const TnCombo combo = {ports, 2, 1, &alias, 1, 0};

#ifndef SAMPLE_BAD_KERNEL
static TnStatus enqueue(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* in,
                        const TnTensor* out) {
  (void)host;
  (void)inst;
  (void)exec;
  (void)in;
  (void)out;
  return TN_OK;
}
#endif

static const TnKernel kernel = {.struct_size = TN_HEADER(TnKernel),
                                .flags = TN_KERNEL_DETERMINISTIC,
                                .op_id = SAMPLE_OP,
                                .name = SAMPLE_NAME ".plain.f32",
                                .revision = 3,
                                .device = TN_CPU,
                                .combos = &combo,
                                .num_combos = 1,
                                .configure = configure,
#ifndef SAMPLE_BAD_KERNEL
                                .enqueue = enqueue
#endif
};

static TnStatus rewrite(const TnHost* host, const TnFusion* fusion, TnGraph* graph, const TnMatch* match) {
  (void)fusion;
  (void)graph;
  (void)match;
  return TN_FAIL(host, TN_DECLINED, "the sample rewrites nothing");
}
static const TnFusion fusion = {TN_HEADER(TnFusion),
                                TN_FUSION_ALWAYS,
                                SAMPLE_NAME ".twice/1",
                                "f(f(x)) = f(x)",
                                SAMPLE_OP "(" SAMPLE_OP "($x))",
                                7,
                                0,
                                NULL,
                                rewrite};

static int32_t probe(const TnHost* host, const TnImporter* importer, const void* head, uint64_t size,
                     const char* name) {
  (void)host;
  (void)importer;
  (void)head;
  (void)size;
  (void)name;
  return 0;
}
static TnStatus import_model(const TnHost* host, const TnImporter* importer, const TnSource* source,
                             const TnAttrs* options, TnGraph* graph) {
  (void)importer;
  (void)source;
  (void)options;
  (void)graph;
  return TN_FAIL(host, TN_INVALID, "the sample reads nothing");
}
static const TnImporter importer = {TN_HEADER(TnImporter), 1,      SAMPLE_NAME, "reads nothing",
                                    ".smp,.sample",        params, probe,       import_model};

static TnStatus import_op(const TnHost* host, const TnOpImporter* self, const TnForeignOp* foreign, TnGraph* graph,
                          TnValueId* values, uint32_t* num_values) {
  (void)self;
  (void)foreign;
  (void)graph;
  (void)values;
  (void)num_values;
  return TN_FAIL(host, TN_INVALID, "the sample teaches nothing");
}
static const TnOpImporter op_importer = {TN_HEADER(TnOpImporter), 0, "test.foreign", SAMPLE_NAME, 1, 0, import_op};

static TnStatus load(const TnHost* host) {
  TnStatus status = host->register_op(host, &op);
#ifdef SAMPLE_BAD_KERNEL
  (void)host->register_kernel(host, &kernel);
#else
  if (status == TN_OK) status = host->register_kernel(host, &kernel);
#endif
  if (status == TN_OK) status = host->register_fusion(host, &fusion);
  if (status == TN_OK) status = host->register_importer(host, &importer);
  if (status == TN_OK) status = host->register_op_importer(host, &op_importer);
  if (status != TN_OK) return status;
#if defined(SAMPLE_FAILS)
  return TN_FAIL(host, TN_DEVICE, "the sample wants a device that is not there");
#elif defined(SAMPLE_SILENT)
  return TN_NOTFOUND;
#else
  ++live;
  host->log(host, TN_LOG_INFO, "load");
  return TN_OK;
#endif
}

static void unload(const TnHost* host) {
  --live;
  host->log(host, TN_LOG_INFO, "unload");
}

TN_EXPORT const TnPlugin* TN_CALL tenon_plugin_query(uint32_t host_major, uint32_t host_minor) {
  static const TnPlugin plugin = {TN_HEADER(TnPlugin), SAMPLE_MAJOR,   SAMPLE_NEEDED, SAMPLE_BUILT,
                                  SAMPLE_ID,           SAMPLE_VERSION, "Apache-2.0",  "https://test",
                                  "sanitizer=none",    load,           unload};
  (void)host_major;
  (void)host_minor;
  return &plugin;
}
