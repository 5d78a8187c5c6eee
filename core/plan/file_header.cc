#include "core/plan/file_header.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "core/base/hash.h"

namespace tenon {
namespace {

constexpr std::string_view kMagic = "TENON ENGINE\n";
constexpr std::string_view kChecksumKey = "header_checksum: ";
constexpr std::size_t kChecksumLine = kChecksumKey.size() + 18 + 1;  // "0x", 16 digits, newline
constexpr std::size_t kBody = kHeaderBytes - kChecksumLine;
constexpr std::size_t kLongestText = 512;

std::string padded_hex(std::uint64_t value) {
  const std::string digits = to_text(value).substr(2);
  return "0x" + std::string(16 - digits.size(), '0') + digits;
}

std::string plain(std::string_view text) {
  std::string result(text.substr(0, kLongestText));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

std::string section_line(const Section& section) {
  return std::to_string(section.offset) + " " + std::to_string(section.size) + " " + padded_hex(section.checksum);
}

template <class Integer>
bool parse_number(std::string_view text, Integer* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_section(std::string_view text, Section* out) {
  const std::size_t first = text.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  if (second == std::string_view::npos) return false;
  const auto checksum = parse_hash64(text.substr(second + 1));
  if (!checksum) return false;
  out->checksum = *checksum;
  return parse_number(text.substr(0, first), &out->offset) &&
         parse_number(text.substr(first + 1, second - first - 1), &out->size);
}

Status not_an_engine(std::string_view file) {
  std::string why = "its first line is not \"TENON ENGINE\"";
  if (file.empty()) why = "it is empty";
  if (file.substr(0, 13) == "TENON ENGINE\r") {
    return {Code::kInvalid,
            "the engine file is damaged: its line ends were converted, as text transfers do; copy it again as binary"};
  }
  if (file.substr(0, 4) == "\x89PNG") why = "it is a PNG picture";
  return {Code::kInvalid, "this is not an engine file: " + why + "; give a file that `tenon build` wrote"};
}

Status damaged(const std::string& what) {
  return {Code::kInvalid, "the engine file's header is damaged: " + what + "; copy the file again or build it again"};
}

}  // namespace

const char* this_os() {
#if defined(__linux__)
  return "linux";
#elif defined(_WIN32)
  return "windows";
#else
  return "other";
#endif
}

const char* this_arch() {
#if defined(__x86_64__) || defined(_M_X64)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "other";
#endif
}

std::string write_file_header(const FileHeader& header) {
  std::string text(kMagic);
  const auto line = [&](const char* key, const std::string& value) { text += std::string(key) + ": " + value + "\n"; };
  line("format_version", std::to_string(header.info.format_version));
  line("tenon_version", plain(header.info.tenon_version));
  line("os", plain(header.info.os));
  line("arch", plain(header.info.arch));
  line("device", plain(header.info.device_signature));
  line("file_bytes", std::to_string(header.info.file_bytes));
  line("plan", section_line(header.plan));
  line("constants", section_line(header.constants));
  text.resize(kBody - 1, ' ');
  text += '\n';
  return text + std::string(kChecksumKey) + padded_hex(hash64(text)) + "\n";
}

Result<FileHeader> parse_file_header(const void* bytes, std::size_t size) {
  const std::string_view file(static_cast<const char*>(bytes), size);
  const bool cut_in_magic = !file.empty() && file.size() < kMagic.size() && kMagic.substr(0, file.size()) == file;
  if (file.substr(0, kMagic.size()) != kMagic && !cut_in_magic) return not_an_engine(file);
  if (file.size() < kHeaderBytes) {
    return damaged("the file ends after " + std::to_string(size) + " bytes, the header alone has " +
                   std::to_string(kHeaderBytes));
  }
  const std::string_view body = file.substr(0, kBody);
  const std::string expected = std::string(kChecksumKey) + padded_hex(hash64(body)) + "\n";
  if (file.substr(kBody, kChecksumLine) != expected) return damaged("its checksum does not fit its contents");

  std::map<std::string_view, std::string_view> values;
  for (std::string_view rest = body.substr(kMagic.size()); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t colon = line.find(": ");
    if (colon != std::string_view::npos) values.emplace(line.substr(0, colon), line.substr(colon + 2));
  }
  FileHeader header;
  if (!parse_number(values["format_version"], &header.info.format_version)) return damaged("no valid format_version");
  if (!parse_number(values["file_bytes"], &header.info.file_bytes)) return damaged("no valid file_bytes");
  header.info.tenon_version = values["tenon_version"];
  header.info.os = values["os"];
  header.info.arch = values["arch"];
  header.info.device_signature = values["device"];
  // Where another version keeps its sections is that version's business.
  if (header.info.format_version == kFormatVersion) {
    if (!parse_section(values["plan"], &header.plan)) return damaged("no valid place of the plan");
    if (!parse_section(values["constants"], &header.constants)) return damaged("no valid place of the constants");
  }
  return header;
}

Result<EngineHeader> read_header(const void* bytes, std::size_t size) {
  TENON_ASSIGN(FileHeader header, parse_file_header(bytes, size));
  return header.info;
}

}  // namespace tenon
