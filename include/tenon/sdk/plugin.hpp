/// TENON_PLUGIN: the one line that makes a library a plugin. Includes the whole SDK.
///   TENON_PLUGIN("acme.swish", "1.0", "MIT", tenon::op("acme.swish/1")..., tenon::kernel<Swish>(...)...)
#ifndef TENON_SDK_PLUGIN_HPP
#define TENON_SDK_PLUGIN_HPP

#include "../plugin/plugin.h"
#include "fusion.hpp"
#include "importer.hpp"
#include "kernel.hpp"
#include "op.hpp"

/// Once per library. The rest of the arguments are definitions: results of op(), kernel(), fusion(), importer(),
/// op_importer(), or Definitions. They are built at the first load, never by static initialisers.
#define TENON_PLUGIN(ID, VERSION, LICENSE, ...)                                \
  TENON_LINKED_PLUGIN(tenon_linked_plugin_, ID, VERSION, LICENSE, __VA_ARGS__) \
  extern "C" TN_EXPORT const TnPlugin* TN_CALL tenon_plugin_query(uint32_t, uint32_t) { return tenon_linked_plugin_(); }

/// A plugin that is linked into a program: defines `static const TnPlugin* FUNCTION()`.
#define TENON_LINKED_PLUGIN(FUNCTION, ID, VERSION, LICENSE, ...)                                                     \
  static ::tenon::SharedDefinitions FUNCTION##definitions;                                                           \
  static TnStatus TN_CALL FUNCTION##load(const TnHost* host) {                                                       \
    return FUNCTION##definitions.load(host, [] { return ::tenon::Definitions{__VA_ARGS__}; });                       \
  }                                                                                                                  \
  static void TN_CALL FUNCTION##unload(const TnHost*) { FUNCTION##definitions.unload(); }                            \
  static const TnPlugin* FUNCTION() {                                                                                \
    static const TnPlugin plugin = {                                                                                 \
        TN_HEADER(TnPlugin), TN_ABI_MAJOR,    TN_USE_MINOR, TN_ABI_MINOR_LATEST, (ID), (VERSION), (LICENSE), "", "", \
        FUNCTION##load,      FUNCTION##unload};                                                                      \
    return &plugin;                                                                                                  \
  }

#endif  // TENON_SDK_PLUGIN_HPP
