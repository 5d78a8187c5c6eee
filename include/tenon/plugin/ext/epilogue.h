/* `tenon.kernel.epilogue/1`: a kernel that can apply an expression to its result before storing it. */
#ifndef TENON_PLUGIN_EXT_EPILOGUE_H
#define TENON_PLUGIN_EXT_EPILOGUE_H

#include "../site.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TnKernel;
typedef struct TnKernelEpilogue {
  uint32_t struct_size;
  uint32_t reserved;
  /* TN_OK if instances configured for `site` apply site->epilogues themselves; TN_DECLINED with the reason if the host
   * should apply them after the kernel (it still runs; its site then has no epilogues). [build] */
  TnStatus(TN_CALL* accepts)(const TnHost* host, const struct TnKernel* kernel, const TnSite* site);
} TnKernelEpilogue;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_EPILOGUE_H */
