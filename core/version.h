// The version of this build, as engine files and messages carry it.
#pragma once

namespace tenon {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace tenon
