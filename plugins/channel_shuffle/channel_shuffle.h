// What the parts of tenon.channel_shuffle/1 share.
#ifndef TENON_PLUGINS_CHANNEL_SHUFFLE_CHANNEL_SHUFFLE_H_
#define TENON_PLUGINS_CHANNEL_SHUFFLE_CHANNEL_SHUFFLE_H_

#include <cstdint>
#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

// The channel of x that becomes channel `to` of y.
inline int64_t shuffled_from(int64_t to, int64_t channels, int64_t groups) {
  return to % groups * (channels / groups) + to / groups;
}

// The rules that find shuffles, and those that spare them.
Definitions channel_shuffle_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_CHANNEL_SHUFFLE_CHANNEL_SHUFFLE_H_
