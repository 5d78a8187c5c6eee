#include "pipeline/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "pipeline/testing/golden.h"
#include "pipeline/testing/temp_dir.h"

namespace tenon::pipeline {
namespace {

/// A file built by hand from the format's description.
std::vector<std::uint8_t> file_of(const std::string& header, const std::string& data, int major = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  const std::size_t size = header.size();
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) text += static_cast<char>((size >> (8 * i)) & 255);
  text += header + data;
  return {text.begin(), text.end()};
}

std::string failure(const std::string& header, const std::string& data = "") {
  const auto result = parse_npy(file_of(header, data));
  return result.ok() ? "" : result.status().message();
}

template <class T>
NpyArray array_of(NpyType type, const std::vector<T>& values) {
  NpyArray array{type, {static_cast<std::int64_t>(values.size())}, {}};
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

template <class T>
std::vector<T> values_of(const NpyArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

TEST(Npy, ReadsAllThreeVersions) {
  for (int major = 1; major <= 3; ++major) {
    const auto array = parse_npy(
        file_of("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }\n", {"\x01\x00\xFF\xFF", 4}, major));
    ASSERT_TRUE(array.ok()) << major << ": " << array.status().message();
    EXPECT_EQ(array->dims, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(values_of<std::int16_t>(*array), (std::vector<std::int16_t>{1, -1}));
  }
}

TEST(Npy, ConvertsFortranOrder) {
  // [[1, 2, 3], [4, 5, 6]] column by column is 1 4 2 5 3 6.
  const auto array =
      parse_npy(file_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "\x01\x04\x02\x05\x03\x06"));
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_EQ(array->bytes, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  // 2 x 2 x 2 with value = its Fortran position: C position (i, j, k) is Fortran i + 2 j + 4 k.
  const auto cube = parse_npy(file_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 2), }",
                                      std::string("\x00\x01\x02\x03\x04\x05\x06\x07", 8)));
  EXPECT_EQ(cube->bytes, (std::vector<std::uint8_t>{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(Npy, ScalarsAndEmptyArrays) {
  const auto scalar = parse_npy(file_of("{'descr': '|i1', 'fortran_order': False, 'shape': (), }", "\x05"));
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ(scalar->elements(), 1u);
  EXPECT_TRUE(scalar->dims.empty());
  const auto empty = parse_npy(file_of("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 9999999999), }", ""));
  ASSERT_TRUE(empty.ok()) << empty.status().message();
  EXPECT_EQ(empty->elements(), 0u);
}

TEST(Npy, SaysWhatIsWrong) {
  EXPECT_NE(failure("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234").find("big-endian"),
            std::string::npos);
  EXPECT_NE(failure("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }").find("'<c8' is not supported"),
            std::string::npos);
  EXPECT_NE(failure("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }").find("not supported"),
            std::string::npos);
  EXPECT_NE(failure("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234").find("need 8 bytes"),
            std::string::npos);
  EXPECT_NE(failure("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "12345").find("but 5 follow"),
            std::string::npos);
  EXPECT_NE(failure("{'descr': '<f4', 'shape': (1,), }").find("'fortran_order'"), std::string::npos);
  EXPECT_NE(failure("{'descr': '<f4', 'descr': '<f4', }").find("repeated key 'descr'"), std::string::npos);
  EXPECT_NE(failure("{'x': 1}").find("unknown"), std::string::npos);
  EXPECT_NE(failure("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }").find("a dimension"),
            std::string::npos);
  EXPECT_NE(failure("{'descr': [('a', '<f4')], }").find("structured"), std::string::npos);
  EXPECT_NE(failure("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", "1234").find("end of the header"),
            std::string::npos);
}

TEST(Npy, AbsurdShapesAllocateNothing) {
  for (const char* shape : {"(9223372036854775807,)", "(4294967296, 4294967296)", "(18446744073709551616,)",
                            "(99999999999999999999999999,)", "(1000000000000, 3)"}) {
    EXPECT_FALSE(failure(std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ") + shape + ", }").empty())
        << shape;
  }
  std::string many = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 1000; ++i) many += "1,";
  EXPECT_NE(failure(many + "), }", "12345678").find("32 dimensions"), std::string::npos);
}

TEST(Npy, EveryTruncationAndEveryFlippedHeaderByteIsSafe) {
  const auto whole = file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", std::string(16, 'x'));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_npy(std::span(whole).first(size)).ok()) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = whole;
      damaged[at] ^= static_cast<std::uint8_t>(1 << bit);
      (void)parse_npy(damaged);
    }
  }
}

TEST(Npy, WritesWhatNumpyWrites) {
  const float values[] = {1.0f, 2.0f};
  const auto file = format_npy(npy_from_floats({1, 2}, values));
  // 10 bytes of prefix and a header padded with blanks to a multiple of 64.
  ASSERT_EQ(file.size(), 128u + 8u);
  const std::string text(file.begin(), file.end());
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(text.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), } ");
  EXPECT_EQ(text[127], '\n');
}

TEST(Npy, FilesOfEveryTypeComeBack) {
  const testing::TempDir dir;
  for (const NpyType type : {NpyType::kF2, NpyType::kF4, NpyType::kF8, NpyType::kI1, NpyType::kI2, NpyType::kI4,
                             NpyType::kI8, NpyType::kU1, NpyType::kU2, NpyType::kU4, NpyType::kU8, NpyType::kB1}) {
    for (const std::vector<std::int64_t>& dims :
         {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}, std::vector<std::int64_t>{2, 0, 5}}) {
      NpyArray array{type, dims, {}};
      std::size_t count = 1;
      for (const auto dim : dims) count *= static_cast<std::size_t>(dim);
      array.bytes.assign(count * npy_type_size(type), 1);
      const auto path = dir.path() / "a.npy";
      ASSERT_TRUE(write_npy(path, array).ok());
      const auto back = read_npy(path);
      ASSERT_TRUE(back.ok()) << npy_type_name(type) << ": " << back.status().message();
      EXPECT_EQ(back->type, type);
      EXPECT_EQ(back->dims, dims);
      EXPECT_EQ(back->bytes, array.bytes);
    }
  }
  EXPECT_EQ(dir.entries(), 1u);
  const auto bad = read_npy(dir.write("bad.npy", "hello hello hello"));
  EXPECT_NE(bad.status().message().find("bad.npy"), std::string::npos);
}

TEST(Npy, ReadsAFileOfNumpy) {
  const auto path = tenon::testing::golden_dir() / "inputs" / "dog_stretch_320.npy";
  TENON_NEED_DATA(path);
  const auto array = read_npy(path);
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_EQ(array->dims, (std::vector<std::int64_t>{1, 3, 320, 320}));
}

TEST(NpyConvert, HalfPrecisionHandComputed) {
  // IEEE 754 binary16: 1.0 = 0x3c00, -2 = 0xc000, largest 65504 = 0x7bff, smallest 2^-24 = 0x0001.
  const std::vector<float> floats{1.0f,
                                  -2.0f,
                                  65504.0f,
                                  65520.0f,
                                  std::ldexp(1.0f, -24),
                                  std::ldexp(1.0f, -25),
                                  1.0f + std::ldexp(1.0f, -11),
                                  1.0f + std::ldexp(3.0f, -11),
                                  -0.0f,
                                  std::ldexp(1.0f, -14)};
  const auto half = convert_npy(array_of(NpyType::kF4, floats), NpyType::kF2);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(values_of<std::uint16_t>(*half),
            (std::vector<std::uint16_t>{0x3c00, 0xc000, 0x7bff, 0x7c00, 1, 0, 0x3c00, 0x3c02, 0x8000, 0x0400}));
}

TEST(NpyConvert, EveryHalfComesBackFromFloat) {
  std::vector<std::uint16_t> halves;
  for (int bits = 0; bits < 0x10000; ++bits) {
    const bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    if (!is_nan) halves.push_back(static_cast<std::uint16_t>(bits));
  }
  const auto floats = convert_npy(array_of(NpyType::kF2, halves), NpyType::kF4);
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ(values_of<std::uint16_t>(*convert_npy(*floats, NpyType::kF2)), halves);
}

TEST(NpyConvert, RoundsAndRefuses) {
  const auto rounded = convert_npy(array_of<float>(NpyType::kF4, {0.5f, 1.5f, -1.5f, 127.4f}), NpyType::kI1);
  ASSERT_TRUE(rounded.ok());
  EXPECT_EQ(values_of<std::int8_t>(*rounded), (std::vector<std::int8_t>{0, 2, -2, 127}));
  const auto refused = convert_npy(array_of<std::int64_t>(NpyType::kI8, {7, 300}), NpyType::kU1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("element 1 is 300"), std::string::npos) << refused.status().message();
  EXPECT_FALSE(convert_npy(array_of<float>(NpyType::kF4, {std::nanf("")}), NpyType::kI4).ok());
  EXPECT_FALSE(convert_npy(array_of<float>(NpyType::kF4, {-1}), NpyType::kU8).ok());
  EXPECT_FALSE(convert_npy(array_of<double>(NpyType::kF8, {9223372036854775808.0}), NpyType::kI8).ok());
  EXPECT_TRUE(convert_npy(array_of<double>(NpyType::kF8, {-9223372036854775808.0}), NpyType::kI8).ok());
  EXPECT_FALSE(convert_npy(array_of<std::uint64_t>(NpyType::kU8, {~0ull}), NpyType::kI8).ok());
  const auto overflow = convert_npy(array_of<double>(NpyType::kF8, {-1e300}), NpyType::kF4);
  EXPECT_EQ(values_of<float>(*overflow)[0], -std::numeric_limits<float>::infinity());
}

TEST(NpyConvert, Booleans) {
  const auto truth = convert_npy(array_of<float>(NpyType::kF4, {0.0f, -0.5f}), NpyType::kB1);
  EXPECT_EQ(truth->bytes, (std::vector<std::uint8_t>{0, 1}));
  const auto back = convert_npy(array_of<std::uint8_t>(NpyType::kB1, {0, 1, 7}), NpyType::kF4);
  EXPECT_EQ(values_of<float>(*back), (std::vector<float>{0, 1, 1}));
}

}  // namespace
}  // namespace tenon::pipeline
