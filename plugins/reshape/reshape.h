// The rules of tenon.reshape/1.
#ifndef TENON_PLUGINS_RESHAPE_RESHAPE_H_
#define TENON_PLUGINS_RESHAPE_RESHAPE_H_

#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

Definitions reshape_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_RESHAPE_RESHAPE_H_
