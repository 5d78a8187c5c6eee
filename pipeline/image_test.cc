#include "pipeline/image.h"

#include <gtest/gtest.h>

#include "pipeline/testing/golden.h"
#include "pipeline/testing/temp_dir.h"

namespace tenon::pipeline {
namespace {

using testing::GoldenCase;
using testing::TempDir;

/// CRC-32 of IEEE 802.3, bit by bit.
std::uint32_t crc32(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

template <std::size_t kSize>
std::string_view bytes_of(const char (&literal)[kSize]) {
  return {literal, kSize - 1};
}

// Made with Python's zlib and struct from the PNG specification: 2 x 1 RGBA (10,20,30,0) (40,50,60,255).
constexpr char kRgbaPng[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x02\x00\x00\x00\x01\x08\x06\x00\x00"
    "\x00\xf4\x22\x7f\x8a\x00\x00\x00\x11\x49\x44\x41\x54\x78\x9c\x63\xe0\x12\x91\x63\xd0\x30\xb2\xf9\x0f\x00\x04\x46"
    "\x01\xd2\x37\xe2\x8a\x14\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";
// Likewise: 1 x 1 gray of 16 bits, 0x1234.
constexpr char kGray16Png[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x01\x00\x00\x00\x01\x10\x00\x00\x00"
    "\x00\x6a\xee\x47\x16\x00\x00\x00\x0b\x49\x44\x41\x54\x78\x9c\x63\x10\x32\x01\x00\x00\x5b\x00\x47\x96\xfb\x1b\x65"
    "\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";

TEST(Image, AlphaIsDroppedWithoutBlending) {
  const TempDir dir;
  const auto image = read_image(dir.write("a.png", bytes_of(kRgbaPng)));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->width, 2);
  EXPECT_EQ(image->height, 1);
  EXPECT_EQ(image->rgb, (std::vector<std::uint8_t>{10, 20, 30, 40, 50, 60}));
}

TEST(Image, SixteenBitGrayBecomesThreeBytes) {
  const TempDir dir;
  const auto image = read_image(dir.write("a.png", bytes_of(kGray16Png)));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->rgb, (std::vector<std::uint8_t>{0x12, 0x12, 0x12}));
}

TEST(Image, ReadsGrayPgmAndColourPpm) {
  const TempDir dir;
  const auto gray = read_image(dir.write("a.pgm", bytes_of("P5 2 1 255\n\x07\xFF")));
  ASSERT_TRUE(gray.ok()) << gray.status().message();
  EXPECT_EQ(gray->rgb, (std::vector<std::uint8_t>{7, 7, 7, 255, 255, 255}));
  const auto color = read_image(dir.write("a.ppm", bytes_of("P6 1 1 255\n\x01\x02\x03")));
  ASSERT_TRUE(color.ok());
  EXPECT_EQ(color->rgb, (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST(Image, SaysWhyAPictureCannotBeRead) {
  const TempDir dir;
  EXPECT_EQ(read_image(dir.path() / "absent.jpg").status().code(), Code::kNotFound);
  EXPECT_EQ(read_image(dir.path()).status().code(), Code::kInvalid);
  const auto text = read_image(dir.write("a.jpg", "hello"));
  EXPECT_EQ(text.status().code(), Code::kInvalid);
  EXPECT_NE(text.status().message().find("not a picture"), std::string::npos) << text.status().message();
  const auto empty = read_image(dir.write("empty.png", ""));
  EXPECT_NE(empty.status().message().find("the file is empty"), std::string::npos) << empty.status().message();
  const auto huge = read_image(dir.write("huge.ppm", "P6 16000000 16000000 255\n"));
  EXPECT_EQ(huge.status().code(), Code::kInvalid);
}

TEST(Image, EveryTruncationOfAPngIsAnError) {
  const TempDir dir;
  const std::string_view whole = bytes_of(kRgbaPng);
  // The last 12 bytes are the IEND chunk, without which stb_image still has the whole picture; its 4-byte CRC is
  // unread.
  for (std::size_t size = 0; size < whole.size() - 16; ++size) {
    EXPECT_FALSE(read_image(dir.write("a.png", whole.substr(0, size))).ok()) << size;
  }
}

TEST(Image, PngKeepsEveryByte) {
  const TempDir dir;
  Image image = make_image(17, 5, 1, 2, 3);
  for (std::size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<std::uint8_t>(i * 37);
  ASSERT_TRUE(write_image(dir.path() / "out.PNG", image).ok());
  EXPECT_EQ(read_image(dir.path() / "out.PNG")->rgb, image.rgb);
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(Image, JpegIsCloseToThePicture) {
  const TempDir dir;
  ASSERT_TRUE(write_image(dir.path() / "out.jpg", make_image(33, 20, 200, 100, 50)).ok());
  const auto back = read_image(dir.path() / "out.jpg");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->width, 33);
  EXPECT_EQ(back->height, 20);
  EXPECT_NEAR(back->rgb[0], 200, 4);
  EXPECT_NEAR(back->rgb[1], 100, 4);
  EXPECT_NEAR(back->rgb[2], 50, 4);
}

TEST(Image, RefusesOtherSuffixesAndLeavesNoFile) {
  const TempDir dir;
  const Image image = make_image(2, 2, 0, 0, 0);
  for (const char* name : {"out.gif", "out", "out.txt"}) {
    const Status status = write_image(dir.path() / name, image);
    EXPECT_EQ(status.code(), Code::kInvalid) << name;
    EXPECT_NE(status.message().find(".png"), std::string::npos) << status.message();
  }
  EXPECT_FALSE(write_image(dir.path() / "out.png", Image{}).ok());
  EXPECT_EQ(write_image(dir.path() / "no" / "out.png", image).code(), Code::kIo);
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(Image, KnowsItsSuffixes) {
  EXPECT_TRUE(image_suffix_supported("a/b.JPeG"));
  EXPECT_FALSE(image_suffix_supported("a/b.bmp"));
  EXPECT_TRUE(image_suffix_readable("a/b.bmp"));
  EXPECT_FALSE(image_suffix_readable("a/png"));
}

class DecodedPicture : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(DecodedPicture, HasTheBytesOfDarknet) {
  TENON_NEED_DATA(GetParam().json_path());
  const auto input = testing::read_json(GetParam().json_path())["input"];
  const auto path = tenon::testing::images_dir() / input["image"].get<std::string>();
  TENON_NEED_DATA(path);
  const auto image = read_image(path);
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->width, input["image_size"][0].get<int>());
  EXPECT_EQ(image->height, input["image_size"][1].get<int>());
  EXPECT_EQ(crc32(image->rgb), std::stoul(input["decoded_rgb_crc32"].get<std::string>(), nullptr, 16));
}

INSTANTIATE_TEST_SUITE_P(Golden, DecodedPicture, ::testing::ValuesIn(testing::darknet_picture_cases()),
                         testing::test_name);

}  // namespace
}  // namespace tenon::pipeline
