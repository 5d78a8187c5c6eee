/* TnImporter: reads a model file into a graph. TnOpImporter: teaches somebody else's importer one foreign op. */
#ifndef TENON_PLUGIN_IMPORTER_H
#define TENON_PLUGIN_IMPORTER_H

#include "abi.h"
#include "attributes.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnImporter TnImporter;
typedef struct TnOpImporter TnOpImporter;

/* A file as the host hands it out; the plugin opens nothing itself. */
typedef struct TnSource {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  const char* name; /* for messages */
  uint64_t size;    /* in bytes */
  /* The bytes [offset, offset + size), valid until the import ends. TN_INVALID beyond the end. */
  TnStatus(TN_CALL* map)(const struct TnSource* self, uint64_t offset, uint64_t size, const void** out);
  /* Another file: "@role" names one that the caller gave ("@weights"), anything else is relative to the model's folder
   * and cannot leave it. TN_NOTFOUND if there is none. Valid until the import ends. */
  TnStatus(TN_CALL* open)(const struct TnSource* self, const char* name, const struct TnSource** out);
} TnSource;

struct TnImporter {
  uint32_t struct_size;
  uint32_t num_options;
  const char* id; /* "tenon.darknet" */
  const char* doc;
  const char* suffixes; /* ".cfg" or ".onnx,.pb" */
  const TnParam* const* options;
  /* How sure it is that it can read a file that begins with these bytes: 0 (no) to 100. [build] */
  int32_t(TN_CALL* probe)(const TnHost* host, const TnImporter* importer, const void* head, uint64_t size,
                          const char* name);
  /* Fills the empty graph. On failure the message names file, line or node. [build] */
  TnStatus(TN_CALL* import_model)(const TnHost* host, const TnImporter* importer, const TnSource* source,
                                  const TnAttrs* options, TnGraph* graph);
};

/* One foreign op or section while its importer is at it. */
typedef struct TnForeignOp {
  uint32_t struct_size;
  uint32_t num_inputs;
  void* context;
  const char* type; /* "[roialign]" of Darknet, "RoiAlign" of ONNX */
  const char* name;
  const TnAttrs* attrs; /* Darknet: every key as TN_ATTR_STR */
  const TnValueId* inputs;
  int32_t line; /* 0: unknown */
  uint32_t opset;
  /* The next `count` floats of a sequential weights file (Darknet). Valid until the import ends. */
  TnStatus(TN_CALL* read_floats)(const struct TnForeignOp* self, uint64_t count, const float** out);
} TnForeignOp;

struct TnOpImporter {
  uint32_t struct_size;
  uint32_t reserved;
  const char* importer_id; /* whom it teaches: "tenon.darknet" */
  const char* type;        /* the foreign name, without brackets */
  uint32_t opset_min;
  uint32_t opset_max; /* 0: no limit */
  /* Adds nodes for the op; writes the value that the next section reads to outputs[0] (and further outputs, up to
   * *num_outputs, which it then sets). [build] */
  TnStatus(TN_CALL* import_op)(const TnHost* host, const TnOpImporter* self, const TnForeignOp* op, TnGraph* graph,
                               TnValueId* outputs, uint32_t* num_outputs);
};

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_IMPORTER_H */
