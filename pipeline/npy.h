// NumPy .npy files: format versions 1.0, 2.0 and 3.0 (numpy.lib.format), read strictly and written as version 1.0.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_NPY_H
#define TENON_PIPELINE_NPY_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

namespace tenon::pipeline {

enum class NpyType { kF2, kF4, kF8, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8, kB1 };

const char* npy_type_name(NpyType type);  ///< "f4", "i8", "b1", ...
std::size_t npy_type_size(NpyType type);  ///< bytes of one element

/// An array in C order, little-endian, without padding. Zero-dimensional arrays have no dims and one element.
struct NpyArray {
  NpyType type = NpyType::kF4;
  std::vector<std::int64_t> dims;
  std::vector<std::uint8_t> bytes;

  std::size_t elements() const { return bytes.size() / npy_type_size(type); }
};

/// Makes an array of float32. REQUIRES: values.size() is the product of dims.
NpyArray npy_from_floats(std::vector<std::int64_t> dims, std::span<const float> values);

/// Parses the bytes of a file; Fortran order is converted to C order. Fails with kInvalid, saying at which part the
/// file is wrong, when it is not .npy, is of another version, is big-endian or of an unsupported type, or has another
/// length than its header says. The length is checked before anything of that size is allocated.
Result<NpyArray> parse_npy(std::span<const std::uint8_t> file);

/// The same from a file; messages begin with the path.
Result<NpyArray> read_npy(const std::filesystem::path& path);

/// The bytes of a version 1.0 file, as numpy.save writes them. REQUIRES: bytes.size() fits type and dims.
std::vector<std::uint8_t> format_npy(const NpyArray& array);

/// Writes a file that appears complete or not at all.
Status write_npy(const std::filesystem::path& path, const NpyArray& array);

/// The same values as another type. Float to integer rounds to nearest, ties to even; integer to float rounds to
/// nearest; anything to b1 is "not zero". Fails with kInvalid, naming element and value, when the new type cannot hold
/// a value (float types hold infinities instead of overflowing).
Result<NpyArray> convert_npy(const NpyArray& array, NpyType type);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_NPY_H
