/* The graph as fusion rules and importers see it. Nodes and values are numbers; the host owns everything.
 * A graph is used by one thread at a time: the one that calls the plugin. */
#ifndef TENON_PLUGIN_GRAPH_H
#define TENON_PLUGIN_GRAPH_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t TnNodeId;
typedef uint32_t TnValueId;
#define TN_NO_ID 0xFFFFFFFFu /* an optional input that is absent; nothing found */

typedef struct TnGraphApi {
  uint32_t struct_size;
  uint32_t reserved;

  /* Reading. Strings and const data stay valid until the graph changes. */

  /* The n-th node of a matched pattern, counted in the order in which the pattern text names ops (0 is the root). */
  TnNodeId(TN_CALL* match_node)(const TnMatch* match, uint32_t n);
  /* The value bound to `$name` of the pattern; TN_NO_ID if an optional one is absent. */
  TnValueId(TN_CALL* match_value)(const TnMatch* match, const char* name);
  const char*(TN_CALL* node_op)(const TnGraph* graph, TnNodeId node);
  const char*(TN_CALL* node_name)(const TnGraph* graph, TnNodeId node);
  const TnAttrs*(TN_CALL* node_attrs)(const TnGraph* graph, TnNodeId node);
  uint32_t(TN_CALL* node_num_inputs)(const TnGraph* graph, TnNodeId node);
  uint32_t(TN_CALL* node_num_outputs)(const TnGraph* graph, TnNodeId node);
  TnValueId(TN_CALL* node_input)(const TnGraph* graph, TnNodeId node, uint32_t n);
  TnValueId(TN_CALL* node_output)(const TnGraph* graph, TnNodeId node, uint32_t n);
  const char*(TN_CALL* value_name)(const TnGraph* graph, TnValueId value);
  /* Dtype and dims of a value into *out (data NULL). */
  TnStatus(TN_CALL* value_desc)(const TnGraph* graph, TnValueId value, TnTensor* out);
  /* The value's contents on the host, row-major; TN_NOTFOUND if it is not constant. */
  TnStatus(TN_CALL* value_const)(const TnGraph* graph, TnValueId value, TnTensor* out);

  /* Writing. A failure leaves the graph as it was. */

  /* Adds a graph input and gives its value. (importers) */
  TnStatus(TN_CALL* new_input)(TnGraph* graph, const char* name, int32_t dtype, const TnDims* dims, TnValueId* out);
  /* Adds a constant; the data is copied. `name` may be NULL. */
  TnStatus(TN_CALL* new_const)(TnGraph* graph, const char* name, const TnTensor* tensor, TnValueId* out);
  /* Adds a node, checks attributes against the op's schema, infers output dims and dtypes, and writes num_outputs value
   * ids to `outputs`. `name` NULL: named by op and first output. output_names NULL: named by the node. `attrs` is
   * copied and may be NULL. TN_NOTFOUND if no loaded plugin has the op. `node` may be NULL. */
  TnStatus(TN_CALL* new_node)(TnGraph* graph, const char* op_id, const char* name, const TnAttrs* attrs,
                              const TnValueId* inputs, uint32_t num_inputs, const char* const* output_names,
                              TnValueId* outputs, uint32_t num_outputs, TnNodeId* node);
  /* Every use of `old_value`, as input or as graph output, becomes `new_value`, which takes over a graph output's name.
   * TN_INVALID if dtype or dims differ. Nodes left without users are removed by the host. */
  TnStatus(TN_CALL* replace)(TnGraph* graph, TnValueId old_value, TnValueId new_value);
  /* Marks a value as a graph output, after those marked before. (importers) */
  TnStatus(TN_CALL* add_output)(TnGraph* graph, TnValueId value);
  /* Text that travels in the engine, such as "detection" (anchors, classes) or "labels"; JSON by convention. */
  TnStatus(TN_CALL* set_metadata)(TnGraph* graph, const char* key, const char* text);

  /* The value of this name, which may be an input or a constant that the caller gave before the model was read;
   * TN_NO_ID if there is none. (importers) */
  TnValueId(TN_CALL* find_value)(const TnGraph* graph, const char* name);
  /* The node that computes a value; TN_NO_ID for inputs and constants. */
  TnNodeId(TN_CALL* value_producer)(const TnGraph* graph, TnValueId value);
  /* TN_CONFLICT if another value has the name. (importers) */
  TnStatus(TN_CALL* rename_value)(TnGraph* graph, TnValueId value, const char* name);
} TnGraphApi;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_GRAPH_H */
