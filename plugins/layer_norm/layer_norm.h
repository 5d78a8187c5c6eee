// What the files of this plugin share.
#ifndef TENON_PLUGINS_LAYER_NORM_LAYER_NORM_H_
#define TENON_PLUGINS_LAYER_NORM_LAYER_NORM_H_

#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

// Rewrites of what models spell out.
Definitions layer_norm_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_LAYER_NORM_LAYER_NORM_H_
