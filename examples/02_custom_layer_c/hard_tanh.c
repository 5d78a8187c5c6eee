/* A layer in plain C: y = min(max(x, -1), 1). The op says what it means, the kernel computes it fast. */
#include <tenon/plugin/all.h>

static float hard_tanh(float x) { return x < -1 ? -1 : x > 1 ? 1 : x; }

static TnStatus infer(const TnHost* host, const TnOp* op, TnInfer* question) {
  (void)op;
  if (question->inputs[0].dtype != TN_F32) return TN_FAIL(host, TN_INVALID, "hard_tanh: expected x to be float32");
  question->outputs[0].dtype = question->inputs[0].dtype;
  question->outputs[0].dims = question->inputs[0].dims;
  return TN_OK;
}

/* Of the output only a box is asked for; it is walked in row-major order. */
static TnStatus reference(const TnHost* host, const TnOp* op, const TnReference* call) {
  const TnDims dims = call->outputs[0].dims;
  const TnBox box = call->boxes[0];
  const float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  int64_t count = 1;
  (void)host;
  (void)op;
  for (int axis = 0; axis < dims.rank; ++axis) count *= box.size[axis];
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, place = 0, stride = 1;
    for (int axis = dims.rank - 1; axis >= 0; --axis) {
      place += (box.start[axis] + rest % box.size[axis]) * stride;
      rest /= box.size[axis];
      stride *= dims.d[axis];
    }
    y[n] = hard_tanh(x[place]);
  }
  return TN_OK;
}

static TnStatus configure(const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
  (void)host;
  (void)kernel;
  (void)config;
  *out = NULL; /* nothing to remember */
  return TN_OK;
}

static TnStatus enqueue(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                        const TnTensor* outputs) {
  const float* x = inputs[0].data;
  float* y = outputs[0].data;
  int64_t count = 1;
  (void)host;
  (void)inst;
  (void)exec;
  for (int axis = 0; axis < inputs[0].dims.rank; ++axis) count *= inputs[0].dims.d[axis];
  for (int64_t n = 0; n < count; ++n) y[n] = hard_tanh(x[n]);
  return TN_OK;
}

static const TnPortSpec x_port = {TN_HEADER(TnPortSpec), 0, "x", "any shape, float32"};
static const TnPortSpec y_port = {TN_HEADER(TnPortSpec), 0, "y", "as x"};
static const TnPortSpec* const op_inputs[] = {&x_port};
static const TnPortSpec* const op_outputs[] = {&y_port};
static const TnOp op = {.struct_size = TN_HEADER(TnOp),
                        .flags = TN_OP_PURE | TN_OP_ELEMENTWISE,
                        .id = "org.example.hard_tanh/1",
                        .doc = "Tanh by three straight lines. y = min(max(x, -1), 1)",
                        .num_inputs = 1,
                        .num_outputs = 1,
                        .inputs = op_inputs,
                        .outputs = op_outputs,
                        .infer = infer,
                        .reference = reference};

static const TnPort ports[] = {{TN_F32, 0, TN_ROW_INIT, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
static const TnAlias in_place = {0, 0, TN_MAY_ALIAS, 0};
static const TnCombo combo = {ports, 1, 1, &in_place, 1, 0};
static const TnKernel kernel = {.struct_size = TN_HEADER(TnKernel),
                                .flags = TN_KERNEL_DETERMINISTIC,
                                .op_id = "org.example.hard_tanh/1",
                                .name = "example.hard_tanh.scalar.f32",
                                .revision = 1,
                                .device = TN_CPU,
                                .combos = &combo,
                                .num_combos = 1,
                                .configure = configure,
                                .enqueue = enqueue};

static TnStatus load(const TnHost* host) {
  const TnStatus status = host->register_op(host, &op);
  return status == TN_OK ? host->register_kernel(host, &kernel) : status;
}

TN_PLUGIN("org.example.hard_tanh", "1.0", load)
