// What `tenon-plugin inspect` knows about a library, as JSON. The human text is made from the same JSON.
//
// Thread rule: pure functions over the registry's thread rule.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include <tenon/status.hpp>

#include "core/base/logger.h"

namespace tenon {

/// Who the plugin says it is, without running its load: file, build_id, plugin {id, version, license, url, build},
/// abi {major, minor_needed, minor_built, host_major, host_minor}. Errors as PluginLibrary::open.
Result<nlohmann::ordered_json> describe_identity(const std::filesystem::path& path);

/// Identity and what the plugin registers when it is loaded into a registry of its own: ops, kernels, fusions,
/// importers, op_importers. Errors as Registry::load. `logger` gets what the plugin says meanwhile.
Result<nlohmann::ordered_json> describe_contents(const std::filesystem::path& path, Logger& logger);

}  // namespace tenon
