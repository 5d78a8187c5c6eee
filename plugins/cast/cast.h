// The ops of the plugin, one function for each source file.
#ifndef TENON_PLUGINS_CAST_CAST_H_
#define TENON_PLUGINS_CAST_CAST_H_

#include <tenon/sdk/plugin.hpp>

namespace tenon::plugins {

Definitions cast_definitions();
Definitions bit_cast_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_CAST_CAST_H_
