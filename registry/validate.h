// What the registry asks of everything that a plugin registers. A struct that passes is safe to use: its required
// fields are there, its arrays are complete and its names follow the grammars.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/plugin/host.h>
#include <tenon/status.hpp>

#include "core/graph/passes.h"

namespace tenon {

/// "vendor.name/1": at least two words of [a-z0-9_] joined by dots, a slash, a positive number.
bool is_op_id(std::string_view text);
/// `<vendor>.<op>.<algorithm>[.<dtype>][.<arch>]`: three to five words of [a-z0-9_].
bool is_kernel_name(std::string_view text);
/// "vendor.name": at least two words of [a-z0-9_].
bool is_importer_id(std::string_view text);
/// UTF-8 without control characters.
bool is_printable_utf8(std::string_view text);

/// The struct behind `item`, as its writer knew it, reaches to the end of `last`, the last field of ABI minor 0.
template <class T, class Field>
Status check_struct_size(const T* item, Field T::*last, const char* type) {
  const auto needed =
      static_cast<std::size_t>(reinterpret_cast<const char*>(&(item->*last) + 1) - reinterpret_cast<const char*>(item));
  if (item->struct_size >= needed) return {};
  return {Code::kInvalid, std::string(type) + ".struct_size is " + std::to_string(item->struct_size) +
                              ", expected at least " + std::to_string(needed) + "; begin the struct with TN_HEADER(" +
                              type + ")"};
}

/// Each answers kInvalid with the id of the thing (as far as it has one), the field, what is there and what is
/// expected. NULL is invalid too.
Status check_op(const TnOp* op);
Status check_kernel(const TnKernel* kernel);
/// Also compiles the pattern; a mistake in it is told with its column.
Status check_fusion(const TnFusion* fusion, Pattern* pattern);
Status check_importer(const TnImporter* importer);
Status check_op_importer(const TnOpImporter* importer);

}  // namespace tenon
