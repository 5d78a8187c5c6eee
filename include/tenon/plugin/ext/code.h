/* `tenon.code/1`, answered by TnHost.get_interface: where kernels that compile while an engine is built keep compiled
 * code, so that no later build with the same timing cache compiles it again. What an engine needs to run goes into the
 * engine (TnKernel.serialize): nothing is found here then.
 *
 * Which store a call reaches is that of the build on the calling thread. A key is text that says everything that the
 * code depends on: name and version of the compiler, architecture, options, source. */
#ifndef TENON_PLUGIN_EXT_CODE_H
#define TENON_PLUGIN_EXT_CODE_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnCode {
  uint32_t struct_size;
  uint32_t reserved;
  /* Writes the code of `key` with one call of out->write. TN_NOTFOUND if there is none, or no build. [build] */
  TnStatus(TN_CALL* find)(const TnHost* host, const char* key, TnWriter* out);
  /* Keeps a copy, in place of what `key` had; without a build nothing. Very large code may be left out. [build] */
  TnStatus(TN_CALL* put)(const TnHost* host, const char* key, const void* code, uint64_t size);
} TnCode;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_CODE_H */
