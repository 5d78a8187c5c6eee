/* A plugin that was linked without something that it calls. */
#include <tenon/plugin/plugin.h>

TnStatus sample_function_that_nobody_defines(const TnHost* host);

TN_PLUGIN("test.undefined", "1.0", sample_function_that_nobody_defines)
