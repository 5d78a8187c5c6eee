// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "pipeline/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstring>

#include "pipeline/files.h"

namespace tenon::pipeline {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are kept in the file's byte order");

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 36;
constexpr std::size_t kMaxHeaderBytes = 1 << 16;  // numpy's own headers have a few hundred bytes
constexpr std::size_t kMaxDims = 32;              // as in numpy
constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeRow {
  NpyType type;
  const char* name;
  const char* descr;
  std::size_t size;
};
constexpr std::array<TypeRow, 12> kTypes{{{NpyType::kF2, "f2", "<f2", 2},
                                          {NpyType::kF4, "f4", "<f4", 4},
                                          {NpyType::kF8, "f8", "<f8", 8},
                                          {NpyType::kI1, "i1", "|i1", 1},
                                          {NpyType::kI2, "i2", "<i2", 2},
                                          {NpyType::kI4, "i4", "<i4", 4},
                                          {NpyType::kI8, "i8", "<i8", 8},
                                          {NpyType::kU1, "u1", "|u1", 1},
                                          {NpyType::kU2, "u2", "<u2", 2},
                                          {NpyType::kU4, "u4", "<u4", 4},
                                          {NpyType::kU8, "u8", "<u8", 8},
                                          {NpyType::kB1, "b1", "|b1", 1}}};

const TypeRow& row(NpyType type) { return kTypes[static_cast<std::size_t>(type)]; }

Status bad(const std::string& what) { return Status(Code::kInvalid, what); }

/// Reads the header: a Python dict literal with exactly the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Status parse() {
    if (!take('{')) return expected("'{'");
    while (!take('}')) {
      std::string key;
      if (!quoted(key)) return expected("a quoted key or '}'");
      if (!take(':')) return expected("':'");
      TENON_RETURN_IF_ERROR(value(key));
      if (!take(',') && !peek('}')) return expected("',' or '}'");
    }
    skip_blanks();
    if (at_ != text_.size()) return expected("the end of the header");
    for (const auto& [present, key] :
         {std::pair{descr.has_value(), "descr"}, std::pair{fortran.has_value(), "fortran_order"},
          std::pair{dims.has_value(), "shape"}}) {
      if (!present) return bad(std::string("the .npy header has no key '") + key + "'");
    }
    return {};
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> dims;

 private:
  Status value(const std::string& key) {
    if (key == "descr" && !descr) {
      std::string text;
      if (!quoted(text)) return expected("a quoted type (structured types are not supported)");
      descr = text;
      return {};
    }
    if (key == "fortran_order" && !fortran) {
      skip_blanks();
      for (const auto& [word, truth] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
        if (!text_.substr(at_).starts_with(word)) continue;
        at_ += word.size();
        fortran = truth;
        return {};
      }
      return expected("True or False");
    }
    if (key == "shape" && !dims) return shape();
    return bad("the .npy header has an unknown or repeated key '" + key + "'");
  }

  Status shape() {
    if (!take('(')) return expected("'(' before the shape");
    dims.emplace();
    while (!take(')')) {
      skip_blanks();
      std::uint64_t number = 0;
      const std::size_t start = at_;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        if (number > (std::uint64_t{1} << 58)) return bad("the .npy header has a dimension that is too large");
        number = number * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
      }
      if (at_ == start) return expected("a dimension or ')'");
      if (dims->size() == kMaxDims) return bad("the .npy header has more than 32 dimensions");
      dims->push_back(static_cast<std::int64_t>(number));
      if (!take(',') && !peek(')')) return expected("',' or ')'");
    }
    return {};
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool peek(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  bool quoted(std::string& out) {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  Status expected(const std::string& what) const {
    return bad("the .npy header is damaged at character " + std::to_string(at_) + ": expected " + what);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Result<NpyType> type_of(const std::string& descr) {
  for (const TypeRow& type : kTypes) {
    if (descr == type.descr) return type.type;
    const bool order_is_free = descr.size() == 3 && (descr[0] == '<' || descr[0] == '=' || descr[0] == '|');
    if (order_is_free && descr.substr(1) == type.name && (descr[0] != '|' || type.size == 1)) return type.type;
    if (descr == std::string(">") + type.name) {
      if (type.size == 1) return type.type;
      return bad("the array is big-endian ('" + descr + "'); save it as array.astype('<" + type.name + "')");
    }
  }
  if (descr == "?") return NpyType::kB1;
  return bad("the array's type '" + descr +
             "' is not supported; use one of f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8, b1");
}

/// Copies elements from Fortran order (first index fastest) to C order.
std::vector<std::uint8_t> to_c_order(std::span<const std::uint8_t> in, const std::vector<std::int64_t>& dims,
                                     std::size_t size) {
  std::vector<std::uint8_t> out(in.size());
  std::vector<std::size_t> stride(dims.size(), 1);
  for (std::size_t d = 1; d < dims.size(); ++d) stride[d] = stride[d - 1] * static_cast<std::size_t>(dims[d - 1]);
  std::vector<std::int64_t> index(dims.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += size) {
    std::memcpy(out.data() + to, in.data() + from * size, size);
    for (std::size_t d = dims.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < dims[d]) break;
      from -= stride[d] * static_cast<std::size_t>(dims[d]);
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

const char* npy_type_name(NpyType type) { return row(type).name; }
std::size_t npy_type_size(NpyType type) { return row(type).size; }

NpyArray npy_from_floats(std::vector<std::int64_t> dims, std::span<const float> values) {
  NpyArray array{NpyType::kF4, std::move(dims), {}};
  const auto* first = reinterpret_cast<const std::uint8_t*>(values.data());
  array.bytes.assign(first, first + values.size_bytes());
  return array;
}

Result<NpyArray> parse_npy(std::span<const std::uint8_t> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (file.size() < 10 || !text.starts_with(kMagic)) return bad("not a .npy file: its first bytes are not \\x93NUMPY");
  const int major = file[6];
  if (major < 1 || major > 3 || file[7] != 0) {
    return bad("the .npy version is " + std::to_string(major) + "." + std::to_string(file[7]) +
               "; versions 1.0, 2.0 and 3.0 can be read");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t header_at = 8 + length_bytes;
  if (file.size() < header_at) return bad("the .npy file ends inside its header length");
  std::size_t header_size = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) header_size |= std::size_t(file[8 + i]) << (8 * i);
  if (header_size > kMaxHeaderBytes || header_size > file.size() - header_at) {
    return bad("the .npy header should have " + std::to_string(header_size) + " bytes, but only " +
               std::to_string(file.size() - header_at) + " follow (and at most 65536 are accepted)");
  }
  HeaderParser header(text.substr(header_at, header_size));
  TENON_RETURN_IF_ERROR(header.parse());
  TENON_ASSIGN(const NpyType type, type_of(*header.descr));

  const std::size_t found = file.size() - header_at - header_size;
  const bool is_empty = std::find(header.dims->begin(), header.dims->end(), 0) != header.dims->end();
  std::uint64_t wanted = is_empty ? 0 : npy_type_size(type);
  for (const std::int64_t dim : *header.dims) {
    if (is_empty) break;
    if (wanted > kMaxFileBytes / static_cast<std::uint64_t>(dim)) {
      return bad("the .npy header's shape needs more than 64 GiB, but " + std::to_string(found) + " bytes follow");
    }
    wanted *= static_cast<std::uint64_t>(dim);
  }
  if (wanted != found) {
    return bad("the .npy header's shape and type need " + std::to_string(wanted) + " bytes of data, but " +
               std::to_string(found) + " follow");
  }
  NpyArray array{type, std::move(*header.dims), {}};
  const auto data = file.subspan(header_at + header_size);
  if (*header.fortran && array.dims.size() > 1) {
    array.bytes = to_c_order(data, array.dims, npy_type_size(type));
  } else {
    array.bytes.assign(data.begin(), data.end());
  }
  return array;
}

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  TENON_ASSIGN(const std::vector<std::uint8_t> file, read_file(path, kMaxFileBytes));
  Result<NpyArray> array = parse_npy(file);
  if (!array.ok()) return array.status().with_context(path.string());
  return array;
}

std::vector<std::uint8_t> format_npy(const NpyArray& array) {
  std::string shape;
  for (const std::int64_t dim : array.dims) shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
  if (array.dims.size() == 1) shape += ",";
  std::string header =
      std::string("{'descr': '") + row(array.type).descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t kPrefix = 10;  // magic, version, length
  constexpr std::size_t kAlign = 64;
  header.append(kAlign - 1 - (kPrefix + header.size()) % kAlign, ' ');
  header += '\n';
  std::vector<std::uint8_t> file;
  file.reserve(kPrefix + header.size() + array.bytes.size());
  for (const char c : kMagic) file.push_back(static_cast<std::uint8_t>(c));
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, header.size() & 255, header.size() >> 8}) {
    file.push_back(static_cast<std::uint8_t>(byte));
  }
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), array.bytes.begin(), array.bytes.end());
  return file;
}

Status write_npy(const std::filesystem::path& path, const NpyArray& array) {
  return write_file_atomically(path, format_npy(array));
}

}  // namespace tenon::pipeline
