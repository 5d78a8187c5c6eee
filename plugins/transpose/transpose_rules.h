// The rules of tenon.transpose/1.
#ifndef TENON_PLUGINS_TRANSPOSE_TRANSPOSE_RULES_H_
#define TENON_PLUGINS_TRANSPOSE_TRANSPOSE_RULES_H_

#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

Definitions transpose_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_TRANSPOSE_TRANSPOSE_RULES_H_
