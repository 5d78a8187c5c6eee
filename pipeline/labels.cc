#include "pipeline/labels.h"

#include "pipeline/files.h"

namespace tenon::pipeline {
namespace {

constexpr std::uint64_t kMaxFileBytes = 16u << 20;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trim(std::string_view line) {
  const std::size_t first = line.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

std::vector<std::string> parse_labels(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string> labels;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    labels.emplace_back(trim(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

Result<std::vector<std::string>> read_labels(const std::filesystem::path& path) {
  TENON_ASSIGN(const std::vector<std::uint8_t> bytes, read_file(path, kMaxFileBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.find('\0') != std::string_view::npos) {
    return Status(Code::kInvalid, path.string() + " is a binary file; give a text file with one class name a line");
  }
  std::vector<std::string> labels = parse_labels(text);
  if (labels.empty()) {
    return Status(Code::kInvalid, path.string() + " holds no class names; give a text file with one a line");
  }
  return labels;
}

std::string label_of(const std::vector<std::string>& labels, int class_id) {
  if (class_id >= 0 && std::size_t(class_id) < labels.size() && !labels[class_id].empty()) return labels[class_id];
  return "class " + std::to_string(class_id);
}

}  // namespace tenon::pipeline
