// A small plan with something in every field, for the tests of the plan file.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace tenon::testing {

Plan example_plan();

/// The same bytes with the sections' and the header's checksums made right again: damage that only the deeper checks
/// see. REQUIRES: the header's text is well-formed.
std::vector<std::uint8_t> reseal(std::vector<std::uint8_t> file);

/// Replaces the value of a `key: value` line of the header and seals the header again.
std::vector<std::uint8_t> with_header_value(std::vector<std::uint8_t> file, const std::string& key,
                                            const std::string& value);

}  // namespace tenon::testing
