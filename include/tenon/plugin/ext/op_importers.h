/* `tenon.importer.ops/1`, answered by TnHost.get_interface: how an importer finds what other plugins teach it. */
#ifndef TENON_PLUGIN_EXT_OP_IMPORTERS_H
#define TENON_PLUGIN_EXT_OP_IMPORTERS_H

#include "../importer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnOpImporterSource {
  uint32_t struct_size;
  uint32_t reserved;
  /* What a loaded plugin registered for one foreign type (written without brackets) of importer `importer_id`; opset 0:
   * any, then the one for the newest. NULL if there is none, otherwise *owner is the host table to call it with. It
   * stays loaded until release. [build] */
  const TnOpImporter*(TN_CALL* find)(const TnHost* host, const char* importer_id, const char* type, uint32_t opset,
                                     const TnHost** owner);
  /* Lets go of what one call of find gave. [build] */
  void(TN_CALL* release)(const TnHost* host, const TnOpImporter* importer);
} TnOpImporterSource;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_OP_IMPORTERS_H */
