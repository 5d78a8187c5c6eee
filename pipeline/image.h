// Image: an 8-bit RGB picture, and how it is read from and written to files.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_IMAGE_H
#define TENON_PIPELINE_IMAGE_H

#include <cstdint>
#include <filesystem>
#include <string>
#include <tenon/status.hpp>
#include <vector>

namespace tenon::pipeline {

/// Pictures with more pixels than this are refused: about 11,500 x 11,500, or 400 MB of RGB bytes.
inline constexpr std::uint64_t kMaxImagePixels = std::uint64_t{1} << 27;

/// A picture: rows from top to bottom, pixels from left to right, three bytes R, G, B a pixel, no padding.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  ///< width * height * 3 bytes

  const std::uint8_t* pixel(int x, int y) const { return rgb.data() + (std::size_t(y) * width + x) * 3; }
  std::uint8_t* pixel(int x, int y) { return rgb.data() + (std::size_t(y) * width + x) * 3; }
};

/// A picture of one colour. REQUIRES: width and height at least 1, at most kMaxImagePixels together.
Image make_image(int width, int height, std::uint8_t red, std::uint8_t green, std::uint8_t blue);

/// Reads a JPEG, PNG, BMP, PPM or PGM file. JPEG is decoded by stb_image, the decoder of Darknet, because another
/// decoder gives other bytes and so other scores. Gray becomes three equal channels; an alpha channel is dropped
/// without blending, as Darknet does; 16-bit channels keep their upper byte. Orientation tags are not applied. Fails
/// with kNotFound (no such file), kInvalid (not a picture, damaged, or too large) or kIo.
Result<Image> read_image(const std::filesystem::path& path);

/// True when write_image has a format for this suffix: .png, .jpg, .jpeg, in any case.
bool image_suffix_supported(const std::filesystem::path& path);

/// True for the suffixes that read_image is meant for, so that a folder can be listed: .jpg .jpeg .png .bmp .ppm .pgm.
bool image_suffix_readable(const std::filesystem::path& path);

/// Writes PNG or JPEG (quality 92), chosen by the suffix. The file appears complete or not at all.
/// Fails with kInvalid (unsupported suffix, empty picture) or kIo.
Status write_image(const std::filesystem::path& path, const Image& image);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_IMAGE_H
