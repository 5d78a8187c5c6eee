/* Attributes of a node: named values of nine types. The host owns them; a plugin reads and writes through this table.
 */
#ifndef TENON_PLUGIN_ATTRIBUTES_H
#define TENON_PLUGIN_ATTRIBUTES_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TN_ATTR_I64 = 1,
  TN_ATTR_F64 = 2,
  TN_ATTR_STR = 3,
  TN_ATTR_I64S = 4,
  TN_ATTR_F64S = 5,
  TN_ATTR_STRS = 6,
  TN_ATTR_TENSOR = 7,
  TN_ATTR_DTYPE = 8,
  TN_ATTR_GRAPH = 9
};

/* One attribute in the schema of an op or the options of an importer. */
typedef struct TnParam {
  uint32_t struct_size;
  int32_t type;     /* TN_ATTR_* */
  const char* name; /* [a-z][a-z0-9_]* */
  int32_t required;
  const char* default_text; /* text form: "1", "0.1", "same", "1,1"; NULL: absent unless given */
  const char* range;        /* for messages and checks: "[0,1]", "[1,)" or "a|b|c"; NULL: any */
  const char* doc;
} TnParam;

/* Getters return TN_NOTFOUND if the attribute is absent and TN_INVALID if it has another type. An absent attribute with
 * a default in the schema is present with that value. Pointers stay valid as long as the attributes do. [any] */
typedef struct TnAttrApi {
  uint32_t struct_size;
  uint32_t reserved;
  TnStatus(TN_CALL* get_i64)(const TnAttrs* attrs, const char* name, int64_t* out);
  TnStatus(TN_CALL* get_f64)(const TnAttrs* attrs, const char* name, double* out);
  TnStatus(TN_CALL* get_str)(const TnAttrs* attrs, const char* name, const char** out);
  TnStatus(TN_CALL* get_i64s)(const TnAttrs* attrs, const char* name, const int64_t** out, uint32_t* count);
  TnStatus(TN_CALL* get_f64s)(const TnAttrs* attrs, const char* name, const double** out, uint32_t* count);
  TnStatus(TN_CALL* get_strs)(const TnAttrs* attrs, const char* name, const char* const** out, uint32_t* count);
  TnStatus(TN_CALL* get_tensor)(const TnAttrs* attrs, const char* name, TnTensor* out);
  TnStatus(TN_CALL* get_dtype)(const TnAttrs* attrs, const char* name, int32_t* out);
  TnStatus(TN_CALL* get_graph)(const TnAttrs* attrs, const char* name, const TnGraph** out);

  /* New attributes, empty or a copy of `from`; the caller destroys them. NULL only without memory. [any] */
  TnAttrs*(TN_CALL* create)(const TnAttrs* from);
  void(TN_CALL* destroy)(TnAttrs* attrs);
  /* Setters copy what they get. TN_INVALID for a bad name. REQUIRES: attrs from create. [any] */
  TnStatus(TN_CALL* set_i64)(TnAttrs* attrs, const char* name, int64_t value);
  TnStatus(TN_CALL* set_f64)(TnAttrs* attrs, const char* name, double value);
  TnStatus(TN_CALL* set_str)(TnAttrs* attrs, const char* name, const char* value);
  TnStatus(TN_CALL* set_i64s)(TnAttrs* attrs, const char* name, const int64_t* values, uint32_t count);
  TnStatus(TN_CALL* set_f64s)(TnAttrs* attrs, const char* name, const double* values, uint32_t count);
  TnStatus(TN_CALL* set_strs)(TnAttrs* attrs, const char* name, const char* const* values, uint32_t count);
  TnStatus(TN_CALL* set_tensor)(TnAttrs* attrs, const char* name, const TnTensor* value);
  TnStatus(TN_CALL* set_dtype)(TnAttrs* attrs, const char* name, int32_t dtype);
} TnAttrApi;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_ATTRIBUTES_H */
