#include "kernels/cpu/normalize.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

constexpr double kEpsilon = 1e-5f;

struct Statistics {
  double mean = 0;
  double variance = 0;
};

Statistics statistics(const float* x, int64_t length, bool centred) {
  Statistics result;
  for (int64_t i = 0; i < length && centred; ++i) result.mean += x[i] / static_cast<double>(length);
  for (int64_t i = 0; i < length; ++i) {
    const double d = x[i] - result.mean;
    result.variance += d * d / static_cast<double>(length);
  }
  return result;
}

TEST(Normalize, Rows) {
  for (const int64_t rows : {0, 1, 3, 100}) {
    for (const int64_t length : {1, 3, 16, 17, 128, 771}) {
      const std::vector<float> x = random_floats(rows * length, 3, -1, 5);
      const std::vector<float> scale = random_floats(length, 4), bias = random_floats(length, 5);
      const Guarded guarded(x), guarded_scale(scale), guarded_bias(bias);
      for (const bool affine : {false, true}) {
        for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
          std::vector<double> expected;
          for (int64_t row = 0; row < rows; ++row) {
            const Statistics s = statistics(x.data() + row * length, length, kind == NormKind::kLayer);
            for (int64_t i = 0; i < length; ++i) {
              const double y = (x[row * length + i] - s.mean) / std::sqrt(s.variance + kEpsilon);
              expected.push_back(affine ? y * scale[i] + bias[i] : y);
            }
          }
          for (const Isa isa : available_isas()) {
            SCOPED_TRACE(testing::Message() << rows << "," << length << " " << isa_name(isa));
            Buffer one(x.size() * sizeof(float), 4);
            normalize_rows(kind, rows, length, 1e-5f, guarded.data(), affine ? guarded_scale.data() : nullptr,
                           affine ? guarded_bias.data() : nullptr, one.data(), make_parallel(1), isa);
            EXPECT_TRUE(one.intact());
            // One element is its own mean: rounding of the mean is divided by sqrt(epsilon).
            EXPECT_EQ(count_mismatches(one.data(), expected, 1e-5), 0);
            std::vector<float> in_place = x;
            normalize_rows(kind, rows, length, 1e-5f, in_place.data(), affine ? scale.data() : nullptr,
                           affine ? bias.data() : nullptr, in_place.data(), make_parallel(3), isa);
            EXPECT_TRUE(x.empty() || std::memcmp(in_place.data(), one.data(), x.size() * sizeof(float)) == 0);
          }
        }
      }
    }
  }
}

// The variance comes from differences to the mean, not from a difference of large squares.
TEST(Normalize, FarFromZero) {
  const std::vector<float> x = {100000, 100001, 100002, 100003};
  for (const Isa isa : available_isas()) {
    std::vector<float> y(4);
    normalize_rows(NormKind::kLayer, 1, 4, 0.0f, x.data(), nullptr, nullptr, y.data(), {}, isa);
    const double deviation = std::sqrt(1.25);
    EXPECT_EQ(count_mismatches(y.data(), {-1.5 / deviation, -0.5 / deviation, 0.5 / deviation, 1.5 / deviation}, 1e-6),
              0);
  }
}

TEST(Normalize, Groups) {
  for (const int64_t pixels : {1, 7, 49, 3000}) {
    for (const bool of_group : {false, true}) {
      const GroupNormShape shape = {2, 3, 4, pixels, of_group};
      const int64_t length = shape.channels * pixels;
      const std::vector<float> x = random_floats(2 * 3 * length, 3, -1, 5);
      const std::vector<float> scale = random_floats(12, 4), bias = random_floats(12, 5);
      std::vector<double> expected;
      Statistics s;
      for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
        if (i % length == 0) s = statistics(x.data() + i, length, true);
        const int64_t c = of_group ? i / length % 3 : i / pixels % 12;
        expected.push_back((x[i] - s.mean) / std::sqrt(s.variance + kEpsilon) * scale[c] + bias[c]);
      }
      const Guarded guarded(x);
      for (const Isa isa : available_isas()) {
        SCOPED_TRACE(testing::Message() << pixels << " " << isa_name(isa));
        const size_t bytes = static_cast<size_t>(24 * pixels) * sizeof(float);
        Buffer one(bytes, 4), three(bytes);
        normalize_groups(shape, 1e-5f, guarded.data(), scale.data(), bias.data(), one.data(), make_parallel(1), isa);
        normalize_groups(shape, 1e-5f, guarded.data(), scale.data(), bias.data(), three.data(), make_parallel(3), isa);
        EXPECT_TRUE(one.intact() && three.intact());
        EXPECT_EQ(std::memcmp(one.data(), three.data(), bytes), 0);
        EXPECT_EQ(count_mismatches(one.data(), expected, 1e-5), 0);
      }
    }
  }
}

TEST(Normalize, Length) {
  for (const int64_t axis : {1, 2, 17, 300}) {
    for (const int64_t inner : {1, 3, 70}) {
      for (const int p : {1, 2}) {
        std::vector<float> x = random_floats(3 * axis * inner, 3, -3, 3);
        for (int64_t a = 0; a < axis; ++a) x[a * inner] = 0.0f;  // a vector of length 0
        std::vector<double> expected(x.size());
        for (int64_t v = 0; v < 3 * inner; ++v) {
          const int64_t first = v / inner * axis * inner + v % inner;
          double norm = 0;
          for (int64_t a = 0; a < axis; ++a) norm += std::pow(std::abs(static_cast<double>(x[first + a * inner])), p);
          norm = std::pow(norm, 1.0 / p);
          for (int64_t a = 0; a < axis; ++a) {
            expected[first + a * inner] = norm == 0 ? 0 : x[first + a * inner] / norm;
          }
        }
        const Guarded guarded(x);
        for (const Isa isa : available_isas()) {
          SCOPED_TRACE(testing::Message() << axis << "," << inner << " p " << p << " " << isa_name(isa));
          Buffer y(x.size() * sizeof(float), 4);
          normalize_length(p, 3, axis, inner, guarded.data(), y.data(), make_parallel(3), isa);
          EXPECT_TRUE(y.intact());
          EXPECT_EQ(count_mismatches(y.data(), expected, 1e-6), 0);
          std::vector<float> in_place = x;
          normalize_length(p, 3, axis, inner, in_place.data(), in_place.data(), make_parallel(1), isa);
          EXPECT_EQ(std::memcmp(in_place.data(), y.data(), x.size() * sizeof(float)), 0);
        }
      }
    }
  }
}

TEST(Normalize, LocalResponse) {
  for (const int64_t channels : {1, 2, 5, 20}) {
    for (const int64_t inner : {1, 9, 169}) {
      for (const int64_t size : {1, 2, 3, 4, 5, 100}) {
        const float beta = size == 3 ? 1.0f : size == 4 ? 0.5f : size == 100 ? 1.3f : 0.75f;
        const LrnParams params = {size, 0.5f, beta, 2.0f};
        const std::vector<float> x = random_floats(2 * channels * inner, 3, -3, 3);
        std::vector<double> expected;
        for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
          const int64_t c = i / inner % channels;
          double sum = 0;
          for (int64_t k = std::max<int64_t>(0, c - (size - 1) / 2); k <= std::min(channels - 1, c + size / 2); ++k) {
            const double v = x[i + (k - c) * inner];
            sum += v * v;
          }
          expected.push_back(x[i] / std::pow(2 + 0.5 / static_cast<double>(size) * sum, beta));
        }
        const Guarded guarded(x);
        for (const Isa isa : available_isas()) {
          SCOPED_TRACE(testing::Message() << channels << "," << inner << "," << size << " " << isa_name(isa));
          Buffer y(x.size() * sizeof(float), 4);
          local_response_norm(params, 2, channels, inner, guarded.data(), y.data(), make_parallel(3), isa);
          EXPECT_TRUE(y.intact());
          EXPECT_EQ(count_mismatches(y.data(), expected, 2e-6), 0);
        }
      }
    }
  }
}

// From one format into another, and the same numbers back.
std::vector<float> moved(const LrnImage& image, const std::vector<float>& x, bool into_blocks) {
  const int64_t blocks = (image.channels + image.block - 1) / image.block;
  std::vector<float> y(
      static_cast<size_t>(image.n * image.pixels * (into_blocks ? blocks * image.block : image.channels)));
  for (int64_t n = 0; n < image.n; ++n) {
    for (int64_t c = 0; c < image.channels; ++c) {
      for (int64_t p = 0; p < image.pixels; ++p) {
        const int64_t row = (n * image.channels + c) * image.pixels + p;
        const int64_t at = ((n * blocks + c / image.block) * image.pixels + p) * image.block + c % image.block;
        y[static_cast<size_t>(into_blocks ? at : row)] = x[static_cast<size_t>(into_blocks ? row : at)];
      }
    }
  }
  return y;
}

TEST(LocalResponseNorm, FormatsAgreeWithRows) {
  for (const int64_t channels : {1, 3, 8, 20, 129, 150}) {
    for (const int64_t block : {channels, int64_t{8}, int64_t{16}}) {
      for (const int64_t size : {1, 2, 3, 5, 64}) {
        const LrnParams params = {size, 0.3f, size == 3 ? 0.6f : 0.75f, 1.5f};
        const LrnImage image = {2, channels, 37, block};
        std::vector<float> x(static_cast<size_t>(2 * channels * 37));
        for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 3;
        const std::vector<float> packed = moved(image, x, true);
        for (const Isa isa : available_isas()) {
          std::vector<float> expected(x.size());
          local_response_norm(params, 2, channels, 37, x.data(), expected.data(), Parallel{}, isa);
          Buffer y(packed.size() * sizeof(float), 4);
          local_response_norm_image(params, image, packed.data(), y.data(), make_parallel(3), isa);
          EXPECT_TRUE(y.intact());
          const std::vector<float> found(y.data(), y.data() + packed.size());
          const std::vector<float> row = moved(image, found, false);
          for (size_t i = 0; i < row.size(); ++i) {
            ASSERT_NEAR(row[i], expected[i], 2e-6 * std::abs(expected[i]))
                << channels << " channels, blocks of " << block << ", size " << size << ", " << isa_name(isa);
          }
          // Channels that only fill up a block stay 0.
          EXPECT_EQ(std::count(found.begin(), found.end(), 0.0f), std::count(packed.begin(), packed.end(), 0.0f));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
