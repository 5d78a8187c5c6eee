/* A plugin that uses most parts of the ABI, in C11. Its binary, built with the headers of ABI 1.0, is loaded by every
 * later host: see README.md. It is not built again, so a change here changes nothing.
 *
 *   abi.scale/1    y[i,j] = x[i,j] * w[j] + bias; a kernel with epilogue, packed weights, tactics, a state of its own
 *   abi.negate/1   y = -x, as an expression
 *   abi.tail/1     x without its first `count` rows, as a placement
 *   abi.outer/1    y[i,j] = w[i] * x[j], that joins its siblings
 * two fusion rules, and an importer of ".abi10" files. */
#include <stdio.h>
#include <string.h>
#include <tenon/plugin/all.h>

#define MAX_INSTRS 16

static const TnPortSpec x = {TN_HEADER(TnPortSpec), 0, "x", ""};
static const TnPortSpec w = {TN_HEADER(TnPortSpec), 0, "w", ""};
static const TnPortSpec y = {TN_HEADER(TnPortSpec), 0, "y", ""};
static const TnPortSpec* const x_only[] = {&x};
static const TnPortSpec* const x_and_w[] = {&x, &w};
static const TnPortSpec* const y_only[] = {&y};

/* --- abi.scale/1 --- */

static const TnParam bias = {TN_HEADER(TnParam), TN_ATTR_F64, "bias", 0, "0", NULL, "is added"};
static const TnParam* const scale_params[] = {&bias};

static TnStatus same_as_x(const TnHost* host, const TnOp* op, TnInfer* question) {
  (void)host;
  (void)op;
  question->outputs[0].dtype = question->inputs[0].dtype;
  question->outputs[0].dims = question->inputs[0].dims;
  return TN_OK;
}

static TnStatus scale_infer(const TnHost* host, const TnOp* op, TnInfer* question) {
  const TnDims* data = &question->inputs[0].dims;
  if (data->rank != 2) return TN_FAIL(host, TN_INVALID, "abi.scale/1: x must have rank 2");
  if (question->inputs[1].dims.rank != 1 || question->inputs[1].dims.d[0] != data->d[1]) {
    return TN_FAIL(host, TN_INVALID, "abi.scale/1: w must have one element for each column of x");
  }
  return same_as_x(host, op, question);
}

static TnStatus scale_reference(const TnHost* host, const TnOp* op, const TnReference* call) {
  (void)op;
  double b = 0;
  const TnStatus status = host->attrs->get_f64(call->attrs, "bias", &b);
  if (status != TN_OK) return status;
  const TnBox* box = &call->boxes[0];
  const int64_t columns = call->inputs[0].dims.d[1];
  const float* data = (const float*)call->inputs[0].data;
  const float* factors = (const float*)call->inputs[1].data;
  float* out = (float*)call->outputs[0].data;
  for (int64_t i = 0; i < box->size[0]; ++i) {
    for (int64_t j = 0; j < box->size[1]; ++j) {
      const int64_t column = box->start[1] + j;
      *out++ = (float)(data[(box->start[0] + i) * columns + column] * factors[column] + b);
    }
  }
  return TN_OK;
}

static const TnOp scale = {.struct_size = TN_HEADER(TnOp),
                           .flags = TN_OP_PURE,
                           .id = "abi.scale/1",
                           .doc = "y[i,j] = x[i,j] * w[j] + bias",
                           .params = scale_params,
                           .num_params = 1,
                           .num_inputs = 2,
                           .num_outputs = 1,
                           .inputs = x_and_w,
                           .outputs = y_only,
                           .infer = scale_infer,
                           .reference = scale_reference};

/* An instance; the epilogue is of one operand, the value itself. */
struct TnInst {
  float bias;
  int32_t step;    /* rows of one call of the pool */
  int32_t columns; /* known from the site */
  uint32_t num_instrs;
  TnExprInstr instrs[MAX_INSTRS];
  const float* weights;
};

static TnStatus check_epilogue(const TnHost* host, const TnSite* site) {
  const TnExpr* expr = site->epilogues != NULL ? site->epilogues[0] : NULL;
  if (expr == NULL) return TN_OK;
  if (site->num_extra > 0 || expr->num_instrs > MAX_INSTRS) return TN_FAIL(host, TN_DECLINED, "too large an epilogue");
  for (uint32_t i = 0; i < expr->num_instrs; ++i) {
    switch (expr->instrs[i].primitive) {
      case TN_EX_INPUT:
      case TN_EX_CONSTANT:
      case TN_EX_ADD:
      case TN_EX_MUL:
      case TN_EX_MAX:
      case TN_EX_NEG:
        break;
      default:
        return TN_FAIL(host, TN_DECLINED, "a primitive that it does not know");
    }
  }
  return TN_OK;
}

static float apply_epilogue(const TnInst* inst, float value) {
  float results[MAX_INSTRS];
  if (inst->num_instrs == 0) return value;
  for (uint32_t i = 0; i < inst->num_instrs; ++i) {
    const TnExprInstr* at = &inst->instrs[i];
    switch (at->primitive) {
      case TN_EX_INPUT:
        results[i] = value;
        break;
      case TN_EX_CONSTANT:
        results[i] = (float)at->value;
        break;
      case TN_EX_ADD:
        results[i] = results[at->a] + results[at->b];
        break;
      case TN_EX_MUL:
        results[i] = results[at->a] * results[at->b];
        break;
      case TN_EX_MAX:
        results[i] = results[at->a] > results[at->b] ? results[at->a] : results[at->b];
        break;
      default:
        results[i] = -results[at->a];
        break;
    }
  }
  return results[inst->num_instrs - 1];
}

static TnStatus scale_supports(const TnHost* host, const TnKernel* kernel, const TnSite* site) {
  (void)kernel;
  if (site->device->kind != TN_CPU) return TN_FAIL(host, TN_DECLINED, "it runs on CPUs");
  if (site->constants[1].data == NULL) return TN_FAIL(host, TN_DECLINED, "w is not constant");
  return TN_OK;
}

static TnStatus scale_tactics(const TnHost* host, const TnKernel* kernel, const TnSite* site, const TnCombo* combo,
                              TnTacticSink* sink) {
  static const TnTactic one = {TN_HEADER(TnTactic), 0, "step=1", NULL, 64};
  static const TnTactic two = {TN_HEADER(TnTactic), 0, "step=2", NULL, 64};
  (void)host;
  (void)kernel;
  (void)site;
  (void)combo;
  const TnStatus status = sink->add(sink, &one);
  return status == TN_OK ? sink->add(sink, &two) : status;
}

static TnStatus scale_configure(const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
  (void)kernel;
  TnInst* inst = (TnInst*)host->alloc(host, sizeof(TnInst), 16);
  if (inst == NULL) return TN_FAIL(host, TN_NOMEM, "no memory for an instance");
  memset(inst, 0, sizeof(*inst));
  double b = 0;
  const TnStatus status = host->attrs->get_f64(config->site->attrs, "bias", &b);
  if (status != TN_OK || sscanf(config->tactic->params, "step=%d", &inst->step) != 1 || inst->step < 1) {
    host->free(host, inst);
    return status != TN_OK ? status : TN_FAIL(host, TN_DECLINED, "no tactic of its own");
  }
  inst->bias = (float)b;
  inst->columns = (int32_t)config->site->max_dims[0].d[1];
  const TnExpr* expr = config->site->epilogues != NULL ? config->site->epilogues[0] : NULL;
  if (expr != NULL) {
    inst->num_instrs = expr->num_instrs;
    memcpy(inst->instrs, expr->instrs, expr->num_instrs * sizeof(TnExprInstr));
  }
  *out = inst;
  return TN_OK;
}

static TnStatus scale_sizes(const TnHost* host, const TnInst* inst, TnSizes* out) {
  (void)host;
  out->persistent = (uint64_t)inst->columns * sizeof(float);
  out->workspace = 64;
  out->context_host = sizeof(int64_t);
  return TN_OK;
}

static TnStatus scale_initialize(const TnHost* host, TnInst* inst, const TnInit* init) {
  if (init->persistent_size < (uint64_t)inst->columns * sizeof(float)) {
    return TN_FAIL(host, TN_INTERNAL, "less persistent memory than asked for");
  }
  if (!init->persistent_filled) memcpy(init->persistent, init->constants_host[1].data, init->persistent_size);
  inst->weights = (const float*)init->persistent;
  return TN_OK;
}

static TnStatus scale_set_shapes(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* in,
                                 const TnTensor* out) {
  (void)host;
  (void)inst;
  (void)out;
  *(int64_t*)exec->context_host = in[0].dims.d[0];
  return TN_OK;
}

struct Rows {
  const TnInst* inst;
  const float* in;
  float* out;
  int64_t count;
};

static void scale_rows(void* argument, int64_t index) {
  const struct Rows* rows = (const struct Rows*)argument;
  const TnInst* inst = rows->inst;
  const int64_t last = (index + 1) * inst->step < rows->count ? (index + 1) * inst->step : rows->count;
  for (int64_t i = index * inst->step * inst->columns; i < last * inst->columns; ++i) {
    rows->out[i] = apply_epilogue(inst, rows->in[i] * inst->weights[i % inst->columns] + inst->bias);
  }
}

static TnStatus scale_enqueue(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* in,
                              const TnTensor* out) {
  const TnParallel* pool = (const TnParallel*)exec->parallel;
  struct Rows rows = {inst, (const float*)in[0].data, (float*)out[0].data, *(const int64_t*)exec->context_host};
  if (exec->workspace == NULL || exec->workspace_size < 64) return TN_FAIL(host, TN_INTERNAL, "no workspace");
  const int64_t calls = (rows.count + inst->step - 1) / inst->step;
  if (pool != NULL) {
    pool->run(pool->context, calls, scale_rows, &rows);
  } else {
    for (int64_t i = 0; i < calls; ++i) scale_rows(&rows, i);
  }
  return TN_OK;
}

static TnStatus scale_serialize(const TnHost* host, const TnInst* inst, TnWriter* writer) {
  if (writer->write(writer, &inst->step, sizeof(inst->step)) != (int64_t)sizeof(inst->step)) {
    return TN_FAIL(host, TN_IO, "the state cannot be written");
  }
  return TN_OK;
}

static TnStatus scale_deserialize(const TnHost* host, const TnKernel* kernel, TnReader* reader, const TnConfig* config,
                                  TnInst** out) {
  int32_t step = 0;
  if (reader->read(reader, &step, sizeof(step)) != (int64_t)sizeof(step)) {
    return TN_FAIL(host, TN_INVALID, "the state is too short");
  }
  const TnStatus status = scale_configure(host, kernel, config, out);
  if (status != TN_OK || (*out)->step == step) return status;
  host->free(host, *out);
  *out = NULL;
  return TN_FAIL(host, TN_INVALID, "the state is that of another tactic");
}

static void scale_destroy(const TnHost* host, TnInst* inst) { host->free(host, inst); }

static TnStatus scale_estimate(const TnHost* host, const TnKernel* kernel, const TnConfig* config, double* ms) {
  (void)host;
  (void)kernel;
  (void)config;
  *ms = 0.001;
  return TN_OK;
}

static TnStatus scale_accepts(const TnHost* host, const TnKernel* kernel, const TnSite* site) {
  (void)kernel;
  return check_epilogue(host, site);
}
static const TnKernelEpilogue scale_epilogue = {TN_HEADER(TnKernelEpilogue), 0, scale_accepts};
static const void* scale_interface(const TnKernel* kernel, const char* id) {
  (void)kernel;
  return strcmp(id, TN_IFACE_KERNEL_EPILOGUE) == 0 ? &scale_epilogue : NULL;
}

static const TnPort scale_ports[] = {
    {TN_F32, 0, TN_ROW_INIT, 0, 0}, {TN_DTYPE_NONE, 0, {0}, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
static const TnAlias in_place = {0, 0, TN_MAY_ALIAS, 0};
static const TnCombo scale_combo = {scale_ports, 2, 1, &in_place, 1, 0};
static const TnKernel scale_kernel = {.struct_size = TN_HEADER(TnKernel),
                                      .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_RELOCATABLE,
                                      .op_id = "abi.scale/1",
                                      .name = "abi.scale.rows.f32",
                                      .revision = 1,
                                      .device = TN_CPU,
                                      .combos = &scale_combo,
                                      .num_combos = 1,
                                      .supports = scale_supports,
                                      .tactics = scale_tactics,
                                      .configure = scale_configure,
                                      .sizes = scale_sizes,
                                      .initialize = scale_initialize,
                                      .set_shapes = scale_set_shapes,
                                      .enqueue = scale_enqueue,
                                      .serialize = scale_serialize,
                                      .deserialize = scale_deserialize,
                                      .destroy = scale_destroy,
                                      .estimate = scale_estimate,
                                      .get_interface = scale_interface};

/* --- abi.negate/1 --- */

static TnStatus negate_reference(const TnHost* host, const TnOp* op, const TnReference* call) {
  (void)host;
  (void)op;
  const TnBox* box = &call->boxes[0];
  const float* data = (const float*)call->inputs[0].data;
  float* out = (float*)call->outputs[0].data;
  for (int64_t i = 0; i < box->size[0]; ++i) {
    for (int64_t j = 0; j < box->size[1]; ++j) {
      *out++ = -data[(box->start[0] + i) * call->inputs[0].dims.d[1] + box->start[1] + j];
    }
  }
  return TN_OK;
}

static TnStatus negate_describe(const TnHost* host, const TnOp* op, const TnAttrs* attrs, const int32_t* dtypes,
                                uint32_t num_inputs, TnExprSink* sink) {
  (void)op;
  (void)attrs;
  if (num_inputs != 1) return TN_FAIL(host, TN_DECLINED, "it takes one input");
  const TnExprInstr input = {TN_EX_INPUT, dtypes[0], -1, -1, -1, 0, 0};
  const int32_t value = sink->emit(sink, &input);
  const TnExprInstr negated = {TN_EX_NEG, dtypes[0], value, -1, -1, 0, 0};
  if (value < 0 || sink->emit(sink, &negated) < 0) return TN_FAIL(host, TN_INTERNAL, "the host takes no expression");
  return TN_OK;
}
static const TnOpExpression negate_expression = {TN_HEADER(TnOpExpression), 0, negate_describe};
static const void* negate_interface(const TnOp* op, const char* id) {
  (void)op;
  return strcmp(id, TN_IFACE_OP_EXPRESSION) == 0 ? &negate_expression : NULL;
}
static const TnOp negate = {.struct_size = TN_HEADER(TnOp),
                            .flags = TN_OP_PURE | TN_OP_ELEMENTWISE,
                            .id = "abi.negate/1",
                            .doc = "y = -x",
                            .num_inputs = 1,
                            .num_outputs = 1,
                            .inputs = x_only,
                            .outputs = y_only,
                            .infer = same_as_x,
                            .reference = negate_reference,
                            .get_interface = negate_interface};

/* --- abi.tail/1 --- */

static const TnParam count = {TN_HEADER(TnParam), TN_ATTR_I64, "count", 1, NULL, "[1,)", "rows that are left out"};
static const TnParam* const tail_params[] = {&count};

static TnStatus tail_infer(const TnHost* host, const TnOp* op, TnInfer* question) {
  int64_t rows = 0;
  TnStatus status = host->attrs->get_i64(question->attrs, "count", &rows);
  if (status == TN_OK) status = same_as_x(host, op, question);
  if (status != TN_OK) return status;
  if (question->inputs[0].dims.rank != 2 || question->inputs[0].dims.d[0] <= rows) {
    return TN_FAIL(host, TN_INVALID, "abi.tail/1: x must have rank 2 and more rows than count");
  }
  question->outputs[0].dims.d[0] -= rows;
  return TN_OK;
}

static TnStatus tail_reference(const TnHost* host, const TnOp* op, const TnReference* call) {
  (void)op;
  int64_t rows = 0;
  const TnStatus status = host->attrs->get_i64(call->attrs, "count", &rows);
  if (status != TN_OK) return status;
  const TnBox* box = &call->boxes[0];
  const int64_t columns = call->inputs[0].dims.d[1];
  const float* data = (const float*)call->inputs[0].data;
  float* out = (float*)call->outputs[0].data;
  for (int64_t i = 0; i < box->size[0]; ++i) {
    for (int64_t j = 0; j < box->size[1]; ++j) {
      *out++ = data[(rows + box->start[0] + i) * columns + box->start[1] + j];
    }
  }
  return TN_OK;
}

static TnStatus tail_describe(const TnHost* host, const TnOp* op, const TnInfer* inferred, TnPlacementSink* sink) {
  (void)op;
  TnPlacement placement = {0, 0, TN_OUTPUT_IN_INPUT, 0, {0}};
  const TnStatus status = host->attrs->get_i64(inferred->attrs, "count", &placement.start[0]);
  return status == TN_OK ? sink->add(sink, &placement) : status;
}
static const TnOpPlacement tail_placement = {TN_HEADER(TnOpPlacement), 0, tail_describe};
static const void* tail_interface(const TnOp* op, const char* id) {
  (void)op;
  return strcmp(id, TN_IFACE_OP_PLACEMENT) == 0 ? &tail_placement : NULL;
}
static const TnOp tail = {.struct_size = TN_HEADER(TnOp),
                          .flags = TN_OP_PURE,
                          .id = "abi.tail/1",
                          .doc = "x without its first rows",
                          .params = tail_params,
                          .num_params = 1,
                          .num_inputs = 1,
                          .num_outputs = 1,
                          .inputs = x_only,
                          .outputs = y_only,
                          .infer = tail_infer,
                          .reference = tail_reference,
                          .get_interface = tail_interface};

/* --- abi.outer/1 --- */

static TnStatus outer_infer(const TnHost* host, const TnOp* op, TnInfer* question) {
  (void)op;
  const TnDims* data = &question->inputs[0].dims;
  const TnDims* factors = &question->inputs[1].dims;
  if (data->rank != 1 || factors->rank != 1) return TN_FAIL(host, TN_INVALID, "abi.outer/1: x and w must have rank 1");
  question->outputs[0].dtype = question->inputs[0].dtype;
  question->outputs[0].dims.rank = 2;
  question->outputs[0].dims.d[0] = factors->d[0];
  question->outputs[0].dims.d[1] = data->d[0];
  return TN_OK;
}

static TnStatus outer_reference(const TnHost* host, const TnOp* op, const TnReference* call) {
  (void)host;
  (void)op;
  const TnBox* box = &call->boxes[0];
  float* out = (float*)call->outputs[0].data;
  for (int64_t i = 0; i < box->size[0]; ++i) {
    for (int64_t j = 0; j < box->size[1]; ++j) {
      *out++ = ((const float*)call->inputs[1].data)[box->start[0] + i] *
               ((const float*)call->inputs[0].data)[box->start[1] + j];
    }
  }
  return TN_OK;
}

static TnStatus outer_describe(const TnHost* host, const TnOp* op, const TnInfer* inferred, TnSiblings* out) {
  (void)host;
  (void)op;
  (void)inferred;
  out->output_axis = 0;
  out->num_inputs = 2;
  out->input_axes[0] = TN_SAME_VALUE;
  out->input_axes[1] = 0;
  return TN_OK;
}
static const TnOpSiblings outer_siblings = {TN_HEADER(TnOpSiblings), 0, outer_describe};
static const void* outer_interface(const TnOp* op, const char* id) {
  (void)op;
  return strcmp(id, TN_IFACE_OP_SIBLINGS) == 0 ? &outer_siblings : NULL;
}
static const TnOp outer = {.struct_size = TN_HEADER(TnOp),
                           .flags = TN_OP_PURE,
                           .id = "abi.outer/1",
                           .doc = "y[i,j] = w[i] * x[j]",
                           .num_inputs = 2,
                           .num_outputs = 1,
                           .inputs = x_and_w,
                           .outputs = y_only,
                           .infer = outer_infer,
                           .reference = outer_reference,
                           .get_interface = outer_interface};

/* --- fusion rules --- */

static TnStatus twice_negated(const TnHost* host, const TnFusion* fusion, TnGraph* graph, const TnMatch* match) {
  (void)fusion;
  const TnGraphApi* api = host->graph;
  return api->replace(graph, api->node_output(graph, api->match_node(match, 0), 0), api->match_value(match, "x"));
}
static const TnFusion negate_rule = {TN_HEADER(TnFusion),
                                     TN_FUSION_ALWAYS,
                                     "abi.twice_negated/1",
                                     "-(-x) = x",
                                     "abi.negate/1(abi.negate/1($x))",
                                     0,
                                     0,
                                     NULL,
                                     twice_negated};

/* x * v * w is x * (v * w), where nothing is added in between. */
static TnStatus no_inner_bias(const TnHost* host, const TnFusion* fusion, const TnGraph* graph, const TnMatch* match) {
  (void)fusion;
  double b = 0;
  const TnStatus status =
      host->attrs->get_f64(host->graph->node_attrs(graph, host->graph->match_node(match, 1)), "bias", &b);
  if (status != TN_OK) return status;
  return b == 0 ? TN_OK : TN_FAIL(host, TN_DECLINED, "the inner one adds something");
}

static TnStatus merge_scales(const TnHost* host, const TnFusion* fusion, TnGraph* graph, const TnMatch* match) {
  (void)fusion;
  const TnGraphApi* api = host->graph;
  TnTensor v, factors;
  TnStatus status = api->value_const(graph, api->match_value(match, "v"), &v);
  if (status == TN_OK) status = api->value_const(graph, api->match_value(match, "w"), &factors);
  if (status != TN_OK) return status;
  float* product = (float*)host->alloc(host, (uint64_t)v.dims.d[0] * sizeof(float), 16);
  if (product == NULL) return TN_FAIL(host, TN_NOMEM, "no memory for the product");
  for (int64_t i = 0; i < v.dims.d[0]; ++i) product[i] = ((const float*)v.data)[i] * ((const float*)factors.data)[i];
  v.data = product;
  const TnNodeId root = api->match_node(match, 0);
  TnValueId inputs[2] = {api->match_value(match, "x"), TN_NO_ID};
  TnValueId result = TN_NO_ID;
  status = api->new_const(graph, NULL, &v, &inputs[1]);
  host->free(host, product);
  if (status == TN_OK) {
    status = api->new_node(graph, "abi.scale/1", NULL, api->node_attrs(graph, root), inputs, 2, NULL, &result, 1, NULL);
  }
  return status == TN_OK ? api->replace(graph, api->node_output(graph, root, 0), result) : status;
}
static const TnFusion scale_rule = {TN_HEADER(TnFusion),
                                    TN_FUSION_CANDIDATE,
                                    "abi.merge_scales/1",
                                    "x * v * w = x * (v * w)",
                                    "abi.scale/1(abi.scale/1($x,$v:const),$w:const)",
                                    0,
                                    0,
                                    no_inner_bias,
                                    merge_scales};

/* --- an importer --- */

/* "abi10 ROWS COLUMNS FACTOR": y = negate(scale(x, w = FACTOR in all columns)) with x [ROWS, COLUMNS]. */
static int32_t probe(const TnHost* host, const TnImporter* importer, const void* head, uint64_t size,
                     const char* name) {
  (void)host;
  (void)importer;
  (void)name;
  return size >= 5 && memcmp(head, "abi10", 5) == 0 ? 90 : 0;
}

static TnStatus import_model(const TnHost* host, const TnImporter* importer, const TnSource* source,
                             const TnAttrs* options, TnGraph* graph) {
  (void)importer;
  (void)options;
  char line[64] = {0};
  const void* bytes = NULL;
  TnStatus status = source->map(source, 0, source->size, &bytes);
  if (status != TN_OK) return status;
  memcpy(line, bytes, source->size < sizeof(line) ? source->size : sizeof(line) - 1);
  int rows = 0, columns = 0;
  float factor = 0, factors[8];
  if (sscanf(line, "abi10 %d %d %f", &rows, &columns, &factor) != 3 || rows < 1 || columns < 1 || columns > 8) {
    return TN_FAIL(host, TN_INVALID, "expected \"abi10 ROWS COLUMNS FACTOR\"");
  }
  for (int i = 0; i < 8; ++i) factors[i] = factor;
  const TnGraphApi* api = host->graph;
  const TnDims dims = {2, 0, {rows, columns}};
  TnTensor constant;
  memset(&constant, 0, sizeof(constant));
  constant.data = factors;
  constant.dtype = TN_F32;
  constant.memory = TN_MEMORY_HOST;
  constant.format.kind = TN_FORMAT_ROW;
  constant.dims.rank = 1;
  constant.dims.d[0] = columns;
  constant.strides[0] = 1;
  TnValueId inputs[2], scaled, negated;
  status = api->new_input(graph, "x", TN_F32, &dims, &inputs[0]);
  if (status == TN_OK) status = api->new_const(graph, "w", &constant, &inputs[1]);
  if (status == TN_OK) {
    status = api->new_node(graph, "abi.scale/1", "scale", NULL, inputs, 2, NULL, &scaled, 1, NULL);
  }
  if (status == TN_OK) {
    status = api->new_node(graph, "abi.negate/1", "negate", NULL, &scaled, 1, NULL, &negated, 1, NULL);
  }
  if (status == TN_OK) status = api->rename_value(graph, negated, "y");
  if (status == TN_OK) status = api->add_output(graph, negated);
  return status == TN_OK ? api->set_metadata(graph, "made_by", "abi10") : status;
}
static const TnImporter importer = {TN_HEADER(TnImporter), 0, "abi.text", "one line of text", ".abi10", NULL, probe,
                                    import_model};

static TnStatus load(const TnHost* host) {
  TnStatus status = host->register_op(host, &scale);
  if (status == TN_OK) status = host->register_op(host, &negate);
  if (status == TN_OK) status = host->register_op(host, &tail);
  if (status == TN_OK) status = host->register_op(host, &outer);
  if (status == TN_OK) status = host->register_kernel(host, &scale_kernel);
  if (status == TN_OK) status = host->register_fusion(host, &negate_rule);
  if (status == TN_OK) status = host->register_fusion(host, &scale_rule);
  if (status == TN_OK) status = host->register_importer(host, &importer);
  host->log(host, TN_LOG_INFO, "the plugin of ABI 1.0 is there");
  return status;
}

TN_PLUGIN("abi.v1_0", "1", load)
