// Class names from a .names file: one a line, in the order of the classes.
//
// Thread rule: free functions; call from any thread.
#ifndef TENON_PIPELINE_LABELS_H
#define TENON_PIPELINE_LABELS_H

#include <filesystem>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

namespace tenon::pipeline {

/// Splits text into names. Accepts LF and CRLF, a UTF-8 byte order mark, and a last line without newline; blanks around
/// a name are dropped; blank lines at the end are ignored, one between names is an empty name and keeps its number.
std::vector<std::string> parse_labels(std::string_view text);

/// Reads a file of names. Fails with kNotFound, kIo, or kInvalid (no names, larger than 16 MiB, or binary).
Result<std::vector<std::string>> read_labels(const std::filesystem::path& path);

/// The name of a class, or "class N" when there is none.
std::string label_of(const std::vector<std::string>& labels, int class_id);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_LABELS_H
