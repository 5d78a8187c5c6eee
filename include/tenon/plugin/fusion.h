/* TnFusion: a rewrite rule, found by a text pattern and carried out by the plugin through the graph API. */
#ifndef TENON_PLUGIN_FUSION_H
#define TENON_PLUGIN_FUSION_H

#include "abi.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnFusion TnFusion;

enum {
  TN_FUSION_ALWAYS = 1,   /* exact and canonical: applied wherever it matches, by priority, then id */
  TN_FUSION_CANDIDATE = 2 /* both forms are kept, measured time decides */
};

/* Pattern: op ids with arguments, the root outermost:
 *   tenon.relu/1(tenon.add/1(tenon.conv2d/1($x,$w:const),$b:const))
 * `$name` binds a value, `:const` asks that it is constant, `|` separates alternative op ids, a trailing `?` marks an
 * input that may be absent. Inputs that the pattern does not name may be absent only. An inner value must have one user
 * and be no graph output; `*` after its closing parenthesis lifts that. */
struct TnFusion {
  uint32_t struct_size;
  int32_t mode;
  const char* id; /* "vendor.rule/1" */
  const char* doc;
  const char* pattern;
  int32_t priority; /* higher first */
  uint32_t reserved;
  /* TN_OK to go on, TN_DECLINED with the reason. NULL: always. Changes nothing. [build] */
  TnStatus(TN_CALL* check)(const TnHost* host, const TnFusion* fusion, const TnGraph* graph, const TnMatch* match);
  /* Adds the new nodes and replaces the root's outputs. On failure the host restores the graph. [build] */
  TnStatus(TN_CALL* rewrite)(const TnHost* host, const TnFusion* fusion, TnGraph* graph, const TnMatch* match);
};

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_FUSION_H */
