#include "importers/onnx/tensors.h"

#include <cstring>
#include <type_traits>

#include "importers/onnx/onnx.pb.h"

namespace tenon::onnx {
namespace {

// ONNX and Tenon number dtypes alike, so bits are all that has to be known here; 0: none of fixed size.
int bits_of(int32_t dtype) {
  switch (dtype) {
    case TN_U2:
    case TN_I2:
      return 2;
    case TN_U4:
    case TN_I4:
    case TN_F4E2M1:
      return 4;
    default:
      return 8 * dtype_size(dtype);
  }
}

/// `bytes` raw bytes per entry of a repeated field, the low ones of each.
template <class List>
void append(const List& list, size_t bytes, std::vector<uint8_t>* out) {
  for (const auto value : list) {
    uint8_t raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out->insert(out->end(), raw, raw + bytes);
  }
}

uint64_t number(const pb::TensorProto& proto, const std::string& key, const std::string& written) {
  if (written.empty() || written.size() > 18 || written.find_first_not_of("0123456789") != std::string::npos) {
    throw Invalid(text("tensor '", proto.name(), "': external data: expected a number of bytes as ", key, ", found '",
                       written, "'"));
  }
  return std::stoull(written);
}

const void* external_data(const pb::TensorProto& proto, const Source* source, uint64_t bytes) {
  const std::string owner = text("tensor '", proto.name(), "': external data");
  std::string location;
  uint64_t offset = 0, length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number(proto, "offset", entry.value());
    if (entry.key() == "length") length = number(proto, "length", entry.value());
  }
  if (location.empty()) throw Invalid(owner + " without a location");
  if (length != bytes) throw Invalid(text(owner, ": expected ", bytes, " bytes for its dims, found ", length));
  if (source == nullptr) throw Invalid(owner + " where no model file is at hand");
  // "@" stands for files that the caller gives to the importer.
  if (location[0] == '@') throw Invalid(text(owner, ": the file '", location, "' is not there"));
  std::optional<Source> file;
  try {
    file = source->open(location);
  } catch (const HostFailure&) {
    throw Invalid(text(owner, ": the file '", location, "' cannot be read, or is outside its folder"));
  }
  if (!file) throw Invalid(text(owner, ": the file '", location, "' is not there"));
  if (offset > file->size() || bytes > file->size() - offset) {
    throw Invalid(text(owner, ": expected bytes ", offset, " to ", offset + bytes, " in '", location, "', which has ",
                       file->size()));
  }
  return bytes == 0 ? "" : file->map(offset, bytes);
}

}  // namespace

bool is_readable(int32_t dtype) { return bits_of(dtype) > 0; }

ReadTensor read_tensor(const pb::TensorProto& proto, const Source* source) {
  const std::string owner = text("tensor '", proto.name(), "'");
  const int32_t dtype = proto.data_type();
  if (dtype == TN_STRING) throw Unsupported{"tensors of strings"};
  const int bits = bits_of(dtype);
  if (bits == 0) throw Unsupported{text("tensors of ONNX's element type ", dtype)};
  const Dims dims = read_dims(proto.dims(), owner);
  const uint64_t bytes = (static_cast<uint64_t>(dims.elements()) * static_cast<uint64_t>(bits) + 7) / 8;

  ReadTensor result;
  const void* data = nullptr;
  uint64_t found = bytes;
  if (proto.data_location() == 1) {
    data = external_data(proto, source, bytes);
  } else if (proto.has_raw_data()) {
    data = proto.raw_data().data();
    found = proto.raw_data().size();
  } else {
    std::vector<uint8_t>& raw = result.converted;
    // Smaller types hold one entry a byte where several share it.
    if (dtype == TN_F32) {
      append(proto.float_data(), 4, &raw);
    } else if (dtype == TN_F64) {
      append(proto.double_data(), 8, &raw);
    } else if (dtype == TN_I64) {
      append(proto.int64_data(), 8, &raw);
    } else if (dtype == TN_U64 || dtype == TN_U32) {
      append(proto.uint64_data(), static_cast<size_t>(bits) / 8, &raw);
    } else {
      append(proto.int32_data(), static_cast<size_t>(bits < 8 ? 8 : bits) / 8, &raw);
    }
    data = raw.data();
    found = raw.size();
  }
  if (found != bytes) {
    throw Invalid(
        text(owner, ": expected ", bytes, " bytes for ", dtype_name(dtype), to_text(dims), ", found ", found));
  }
  result.tensor = host_tensor(dtype, dims, data);
  return result;
}

}  // namespace tenon::onnx
