// What the files of this plugin share.
#ifndef TENON_PLUGINS_SOFTMAX_SOFTMAX_H_
#define TENON_PLUGINS_SOFTMAX_SOFTMAX_H_

#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

// Rewrites of what models spell out.
Definitions softmax_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_SOFTMAX_SOFTMAX_H_
