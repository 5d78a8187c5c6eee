/* Pointwise expressions: how an elementwise op says what it computes, so that anyone's kernel can fuse it. */
#ifndef TENON_PLUGIN_EXT_EXPRESSION_H
#define TENON_PLUGIN_EXT_EXPRESSION_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Primitives. Arguments a, b, c are indices of earlier instructions. A reader that meets one it does not know declines.
 */
enum {
  TN_EX_INPUT = 1,    /* operand number `operand`; of an epilogue, 0 is the value being stored */
  TN_EX_CONSTANT = 2, /* `value` */
  TN_EX_ADD = 3,
  TN_EX_SUB = 4,
  TN_EX_MUL = 5,
  TN_EX_DIV = 6,
  TN_EX_MIN = 7,
  TN_EX_MAX = 8,
  TN_EX_NEG = 9,
  TN_EX_ABS = 10,
  TN_EX_EXP = 11,
  TN_EX_LOG = 12,
  TN_EX_TANH = 13,
  TN_EX_ERF = 14,
  TN_EX_SQRT = 15,
  TN_EX_RSQRT = 16,
  TN_EX_POW = 17,
  TN_EX_SIN = 18,
  TN_EX_COS = 19,
  TN_EX_FLOOR = 20,
  TN_EX_CEIL = 21,
  TN_EX_ROUND_EVEN = 22,
  TN_EX_SIGN = 23,
  TN_EX_MOD = 24,
  TN_EX_AND = 25,
  TN_EX_OR = 26,
  TN_EX_XOR = 27,
  TN_EX_NOT = 28,
  TN_EX_LESS = 29,
  TN_EX_LESS_EQUAL = 30,
  TN_EX_EQUAL = 31,
  TN_EX_SELECT = 32, /* a ? b : c */
  TN_EX_CAST = 33    /* a in `dtype` */
};

/* One step in single-assignment form. frozen */
typedef struct TnExprInstr {
  int32_t primitive;
  int32_t dtype; /* compute dtype */
  int32_t a;
  int32_t b;
  int32_t c;
  uint32_t operand;
  double value;
} TnExprInstr;

/* The last instruction is the result. */
typedef struct TnExpr {
  uint32_t struct_size;
  uint32_t num_instrs;
  const TnExprInstr* instrs;
} TnExpr;

/* `tenon.op.expression/1`, answered by TnOp.get_interface. */
struct TnOp;
typedef struct TnExprSink {
  uint32_t struct_size;
  void* context;
  /* Appends one instruction and returns its index, or -1 if it is malformed. */
  int32_t(TN_CALL* emit)(struct TnExprSink* self, const TnExprInstr* instr);
} TnExprSink;
typedef struct TnOpExpression {
  uint32_t struct_size;
  uint32_t reserved;
  /* The op with these attributes over operands 0..num_inputs-1 of the given dtypes. TN_DECLINED with the reason if it
   * has no such form. [build] */
  TnStatus(TN_CALL* describe)(const TnHost* host, const struct TnOp* op, const TnAttrs* attrs, const int32_t* dtypes,
                              uint32_t num_inputs, TnExprSink* sink);
} TnOpExpression;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_EXPRESSION_H */
