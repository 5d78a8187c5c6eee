/* TnPlugin: the one symbol that a plugin library exports, and what it says about itself. */
#ifndef TENON_PLUGIN_PLUGIN_H
#define TENON_PLUGIN_PLUGIN_H

#include "abi.h"
#include "host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnPlugin {
  uint32_t struct_size;
  uint32_t abi_major;        /* must equal the host's */
  uint32_t abi_minor_needed; /* must not exceed the host's */
  uint32_t abi_minor_built;  /* of the headers it was compiled with; only for messages */
  /* The texts must not be NULL; all but id and version may be "". */
  const char* id;      /* "org.example.relu"; reverse domain or vendor.name */
  const char* version; /* compared as text: "1" and "1.0" differ */
  const char* license;
  const char* url;
  const char* build; /* "cuda=13.0;sm=90;sanitizer=none"; "" if nothing is to say */
  /* Registers what the plugin has; once for each registry. On failure, its own or a refused registration, the host
   * undoes what was registered, and calls unload only if load had returned TN_OK. [load] */
  TnStatus(TN_CALL* load)(const TnHost* host);
  /* Nothing refers to the plugin any more. NULL: nothing to do. [load] */
  void(TN_CALL* unload)(const TnHost* host);
} TnPlugin;

/* Static data, no side effects. NULL if it cannot serve such a host. [scan] */
TN_EXPORT const TnPlugin* TN_CALL tenon_plugin_query(uint32_t host_major, uint32_t host_minor);

/* Defines tenon_plugin_query for a plugin without unload: TN_PLUGIN("org.example.relu", "0.1.0", load) */
#define TN_PLUGIN(ID, VERSION, LOAD)                                                               \
  TN_EXPORT const TnPlugin* TN_CALL tenon_plugin_query(uint32_t host_major, uint32_t host_minor) { \
    static const TnPlugin plugin = {TN_HEADER(TnPlugin),                                           \
                                    TN_ABI_MAJOR,                                                  \
                                    TN_USE_MINOR,                                                  \
                                    TN_ABI_MINOR_LATEST,                                           \
                                    (ID),                                                          \
                                    (VERSION),                                                     \
                                    "unknown",                                                     \
                                    "",                                                            \
                                    "",                                                            \
                                    (LOAD),                                                        \
                                    0};                                                            \
    (void)host_major;                                                                              \
    (void)host_minor;                                                                              \
    return &plugin;                                                                                \
  }

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_PLUGIN_H */
