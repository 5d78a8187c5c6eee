// The text that people read, made from the JSON of describe.h.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace tenon {

/// Lines of plain text, ending with a newline. Lists that the JSON lacks (identity only) are left out.
std::string render(const nlohmann::ordered_json& description);

}  // namespace tenon
