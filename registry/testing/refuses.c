/* A plugin that cannot serve any host. */
#include <tenon/plugin/plugin.h>

TN_EXPORT const TnPlugin* TN_CALL tenon_plugin_query(uint32_t host_major, uint32_t host_minor) {
  (void)host_major;
  (void)host_minor;
  return NULL;
}
