#include "pipeline/image.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <memory>
#include <new>
#include <string_view>

#include "pipeline/files.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_ONLY_PNM
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

namespace tenon::pipeline {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 30;
constexpr int kJpegQuality = 92;

std::string lower_suffix(const std::filesystem::path& path) {
  std::string suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return suffix;
}

bool contains(std::span<const std::string_view> list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

struct Sink {
  std::vector<std::uint8_t> bytes;
  bool out_of_memory = false;
};

void append(void* context, void* data, int size) {
  auto* sink = static_cast<Sink*>(context);
  const auto* first = static_cast<const std::uint8_t*>(data);
  try {
    sink->bytes.insert(sink->bytes.end(), first, first + size);
  } catch (const std::bad_alloc&) {
    sink->out_of_memory = true;
  }
}

}  // namespace

Image make_image(int width, int height, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  Image image{width, height, {}};
  image.rgb.resize(std::size_t(width) * std::size_t(height) * 3);
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
    image.rgb[i] = red;
    image.rgb[i + 1] = green;
    image.rgb[i + 2] = blue;
  }
  return image;
}

Result<Image> read_image(const std::filesystem::path& path) {
  TENON_ASSIGN(const std::vector<std::uint8_t> bytes, read_file(path, kMaxFileBytes));
  const int size = static_cast<int>(bytes.size());
  int width = 0;
  int height = 0;
  int channels = 0;
  if (stbi_info_from_memory(bytes.data(), size, &width, &height, &channels) == 0) {
    return Status(Code::kInvalid, path.string() + " is not a picture that can be read (" +
                                      (bytes.empty() ? "the file is empty" : stbi_failure_reason()) +
                                      "); give a JPEG, PNG, BMP, PPM or PGM file");
  }
  if (width <= 0 || height <= 0 || std::uint64_t(width) * std::uint64_t(height) > kMaxImagePixels) {
    return Status(Code::kInvalid, path.string() + " is " + std::to_string(width) + " x " + std::to_string(height) +
                                      " pixels; at most " + std::to_string(kMaxImagePixels) + " pixels are accepted");
  }
  const std::unique_ptr<stbi_uc, void (*)(void*)> decoded(
      stbi_load_from_memory(bytes.data(), size, &width, &height, &channels, 3), stbi_image_free);
  if (decoded == nullptr) {
    return Status(Code::kInvalid, path.string() + " is damaged: " + stbi_failure_reason());
  }
  Image image{width, height, {}};
  image.rgb.assign(decoded.get(), decoded.get() + std::size_t(width) * std::size_t(height) * 3);
  return image;
}

bool image_suffix_supported(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 3> kSuffixes{".png", ".jpg", ".jpeg"};
  return contains(kSuffixes, lower_suffix(path));
}

bool image_suffix_readable(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 6> kSuffixes{".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm"};
  return contains(kSuffixes, lower_suffix(path));
}

Status write_image(const std::filesystem::path& path, const Image& image) {
  if (!image_suffix_supported(path)) {
    return Status(Code::kInvalid, "cannot write " + path.string() + ": unsupported suffix '" +
                                      path.extension().string() + "'; use .png, .jpg or .jpeg");
  }
  if (image.width <= 0 || image.height <= 0 ||
      image.rgb.size() != std::size_t(image.width) * std::size_t(image.height) * 3) {
    return Status(Code::kInvalid, "cannot write " + path.string() + ": the picture is empty");
  }
  Sink sink;
  const int ok =
      lower_suffix(path) == ".png"
          ? stbi_write_png_to_func(append, &sink, image.width, image.height, 3, image.rgb.data(), 0)
          : stbi_write_jpg_to_func(append, &sink, image.width, image.height, 3, image.rgb.data(), kJpegQuality);
  if (ok == 0 || sink.out_of_memory) {
    return Status(Code::kNoMemory, "cannot encode " + path.string() + ": out of memory");
  }
  return write_file_atomically(path, sink.bytes);
}

}  // namespace tenon::pipeline
