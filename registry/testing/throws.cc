// A C++ plugin that breaks the rule and lets an exception out of load.
#include <stdexcept>

#include <tenon/plugin/plugin.h>

namespace {
TnStatus load(const TnHost*) { throw std::runtime_error("disk on fire"); }
}  // namespace

TN_PLUGIN("test.throws", "1.0", load)
