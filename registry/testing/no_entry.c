/* A library that is no plugin. */
#include <tenon/plugin/abi.h>

TN_EXPORT int some_other_function(void);
int some_other_function(void) { return 1; }
