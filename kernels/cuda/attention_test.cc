#include "kernels/cuda/attention.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

// What a test varies beyond the shape.
struct Case {
  AttentionShape shape;
  std::vector<unsigned char> allowed;
  std::vector<float> bias;
  std::vector<int64_t> lengths;
};

AttentionShape shape(int64_t batch, int64_t heads, int64_t key_heads, int64_t queries, int64_t keys, int64_t size,
                     int64_t value_size) {
  AttentionShape s;
  s.batch = batch, s.heads = heads, s.key_heads = key_heads, s.queries = queries, s.keys = keys;
  s.size = size, s.value_size = value_size, s.mask_keys = keys;
  s.q = {heads * queries * size, queries * size, size};
  s.k = {key_heads * keys * size, keys * size, size};
  s.v = {key_heads * keys * value_size, keys * value_size, value_size};
  s.y = {heads * queries * value_size, queries * value_size, value_size};
  s.scale = 0.3f;
  return s;
}

std::vector<double> expect(const Case& c, const std::vector<float>& q, const std::vector<float>& k,
                           const std::vector<float>& v) {
  const AttentionShape& s = c.shape;
  std::vector<double> y(s.batch * s.heads * s.queries * s.value_size);
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const int64_t query = row % s.queries, head = row / s.queries % s.heads, batch = row / s.queries / s.heads;
    const int64_t key_head = batch * s.key_heads + head / (s.heads / s.key_heads);
    const int64_t valid = c.lengths.empty() ? s.keys : c.lengths[batch];
    const int64_t place = query + (c.lengths.empty() ? s.past : valid - s.queries);
    double total = 0;
    for (int64_t key = 0; key < s.keys; ++key) {
      const int64_t at =
          batch * s.mask_strides[0] + head * s.mask_strides[1] + query * s.mask_strides[2] + key * s.mask_strides[3];
      if (key >= valid || key >= s.mask_keys || (s.causal && key > place) || (s.left >= 0 && key < place - s.left) ||
          (s.right >= 0 && key > place + s.right) || (!c.allowed.empty() && c.allowed[at] == 0)) {
        continue;
      }
      double score = 0;
      for (int64_t n = 0; n < s.size; ++n) {
        score += static_cast<double>(q[row * s.size + n]) * k[(key_head * s.keys + key) * s.size + n];
      }
      score *= s.scale;
      if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
      if (!c.bias.empty()) score += c.bias[at];
      const double weight = std::exp(score);
      total += weight;
      for (int64_t n = 0; n < s.value_size && weight != 0; ++n) {
        y[row * s.value_size + n] += weight * v[(key_head * s.keys + key) * s.value_size + n];
      }
    }
    for (int64_t n = 0; n < s.value_size; ++n) {
      double& value = y[row * s.value_size + n];
      value = total == 0 ? 0 : value / total;
    }
  }
  return y;
}

class AttentionTest : public CudaTest {
 protected:
  template <class T>
  std::vector<T> run(ElementType type, const Case& c, const std::vector<T>& q, const std::vector<T>& k,
                     const std::vector<T>& v, const std::vector<T>& bias) {
    const AttentionShape& s = c.shape;
    const Input q_data(q, sizeof(T)), k_data(k, sizeof(T)), v_data(v, sizeof(T)), bias_data(bias, sizeof(T)),
        allowed(c.allowed), lengths(c.lengths);
    const Output y(s.batch * s.heads * s.queries * s.value_size * sizeof(T), sizeof(T));
    launch([&](cudaStream_t stream) {
      return attention(
          type, s,
          {q_data.data(), k_data.data(), v_data.data(), c.allowed.empty() ? nullptr : allowed.data<unsigned char>(),
           bias.empty() ? nullptr : bias_data.data(), c.lengths.empty() ? nullptr : lengths.data<int64_t>(), y.data()},
          stream);
    });
    return y.template get<T>();
  }

  void check(const Case& c) {
    const AttentionShape& s = c.shape;
    const auto q = random_floats(s.batch * s.heads * s.queries * s.size, 1, -2, 2);
    const auto k = random_floats(s.batch * s.key_heads * s.keys * s.size, 2, -2, 2);
    const auto v = random_floats(s.batch * s.key_heads * s.keys * s.value_size, 3);
    EXPECT_EQ(count_mismatches(run(ElementType::kF32, c, q, k, v, c.bias), expect(c, q, k, v), 1e-5), 0);
    const auto hq = to_half(q), hk = to_half(k), hv = to_half(v), hb = to_half(c.bias);
    Case half = c;
    half.bias = to_floats(hb);
    EXPECT_EQ(count_mismatches(to_floats(run(ElementType::kF16, c, hq, hk, hv, hb)),
                               expect(half, to_floats(hq), to_floats(hk), to_floats(hv)), 1e-3),
              0);
  }
};

TEST_F(AttentionTest, GradedShapes) {
  for (const int64_t size : {1, 3, 32, 64, 65, 128, 130, 256}) {
    for (const int64_t queries : {1, 7, 33}) {
      check({shape(2, 2, 2, queries, 45, size, size), {}, {}, {}});
      if (HasFailure()) FAIL() << "size " << size << " queries " << queries;
    }
  }
  check({shape(1, 6, 2, 9, 64, 20, 50), {}, {}, {}});
  check({shape(8, 16, 4, 70, 130, 64, 44), {}, {}, {}});  // blocks of many queries
  check({shape(8, 16, 16, 70, 65, 100, 128), {}, {}, {}});
  check({shape(1, 4, 1, 40, 1, 50, 20), {}, {}, {}});
  check({shape(2, 2, 1, 3, 0, 8, 8), {}, {}, {}});
  check({shape(0, 2, 1, 3, 5, 8, 8), {}, {}, {}});
}

TEST_F(AttentionTest, WhatAQuerySees) {
  for (const int64_t queries : {1, 20, 70}) {
    for (const bool causal : {false, true}) {
      Case c{shape(2, 4, 2, queries, 70, 16, 16), {}, {}, {}};
      c.shape.causal = causal;
      check(c);
      c.shape.past = 10;
      check(c);
      c.shape.left = 5;
      check(c);
      c.shape.right = 3;
      check(c);
      c.shape.past = -100;
      check(c);
      c.lengths = {40, 70};
      check(c);
      c.lengths = {0, 3};
      check(c);
      c.shape.left = c.shape.right = -1;
      check(c);
      if (HasFailure()) FAIL() << "queries " << queries << " causal " << causal;
    }
  }
}

// All heads of a row behind each other, q, k and v in one tensor: what is read and written is the same as of tensors of
// their own.
TEST_F(AttentionTest, Packed) {
  for (const auto& [heads, key_heads] : {std::pair<int64_t, int64_t>{3, 3}, {6, 2}}) {
    const int64_t batch = 2, steps = 45, size = 20, row = (heads + 2 * key_heads) * size;
    const Case c{shape(batch, heads, key_heads, steps, steps, size, size), {}, {}, {}};
    const auto packed = random_floats(batch * steps * row, 7, -2, 2);
    std::vector<float> q(batch * heads * steps * size), k(batch * key_heads * steps * size), v(k.size());
    const auto unpack = [&](int64_t count, int64_t offset, std::vector<float>& to) {
      for (int64_t i = 0; i < static_cast<int64_t>(to.size()); ++i) {
        const int64_t n = i % size, step = i / size % steps, head = i / size / steps % count;
        to[i] = packed[(i / size / steps / count * steps + step) * row + offset + head * size + n];
      }
    };
    unpack(heads, 0, q);
    unpack(key_heads, heads * size, k);
    unpack(key_heads, (heads + key_heads) * size, v);
    const std::vector<double> apart = expect(c, q, k, v);
    std::vector<double> expected(apart.size());
    for (int64_t i = 0; i < static_cast<int64_t>(apart.size()); ++i) {
      const int64_t n = i % size, step = i / size % steps, head = i / size / steps % heads;
      expected[(i / size / steps / heads * steps + step) * heads * size + head * size + n] = apart[i];
    }
    AttentionShape s = c.shape;
    s.q = s.k = s.v = {steps * row, size, row};
    s.y = {steps * heads * size, size, heads * size};
    const Input data(packed, 4);
    const Output y(expected.size() * 4, 4);
    const float* all = data.data<float>();
    launch([&](cudaStream_t stream) {
      return attention(ElementType::kF32, s,
                       {all, all + heads * size, all + (heads + key_heads) * size, nullptr, nullptr, nullptr, y.data()},
                       stream);
    });
    EXPECT_EQ(count_mismatches(y.get(), expected, 1e-5), 0) << heads << " heads, " << key_heads << " key heads";
  }
}

TEST_F(AttentionTest, Masks) {
  const int64_t queries = 37, keys = 50;
  Case c{shape(2, 3, 3, queries, keys, 24, 40), {}, {}, {}};
  const auto random = random_floats(2 * 3 * queries * keys, 5);
  const auto fill = [&](const std::vector<int64_t>& strides, int64_t count) {
    std::copy(strides.begin(), strides.end(), c.shape.mask_strides);
    c.allowed.clear();
    c.bias.assign(random.begin(), random.begin() + count);
    for (float& value : c.bias) value = value > 0.5f ? -INFINITY : 2 * value;
    check(c);
    c.bias.clear();
    for (int64_t i = 0; i < count; ++i) c.allowed.push_back(random[i] > 0);
    check(c);
  };
  fill({3 * queries * keys, queries * keys, keys, 1}, 2 * 3 * queries * keys);
  fill({0, 0, keys, 1}, queries * keys);
  fill({keys, 0, 0, 1}, 2 * keys);
  fill({0, 0, 1, 0}, queries);  // hides rows as a whole
  c.shape.mask_keys = 20;
  fill({0, 0, 20, 1}, queries * 20);
  c.shape.softcap = 0.8f;
  fill({0, 0, 20, 1}, queries * 20);
}

TEST_F(AttentionTest, HiddenValuesMayBeAnything) {
  for (const int64_t size : {2, 4}) {  // 4: tiled
    Case c{shape(1, 1, 1, 2, 3, size, size), {1, 0, 1}, {}, {2}};
    c.shape.mask_strides[3] = 1;
    const std::vector<float> q(2 * size, 1.0f);
    std::vector<float> k(3 * size, 1.0f), v(3 * size, NAN);
    k[size] = k[3 * size - 1] = NAN, v[size] = INFINITY;
    std::fill_n(v.begin(), size, 5.0f);
    EXPECT_EQ(run(ElementType::kF32, c, q, k, v, {}), std::vector<float>(2 * size, 5.0f)) << size;
  }
}

TEST_F(AttentionTest, LargeScores) {
  const Case c{shape(1, 1, 1, 1, 40, 1, 1), {}, {}, {}};
  std::vector<float> k(40, 0.0f), v(40, 1.0f);
  k[37] = 1.0f, v[37] = 3.0f;
  EXPECT_EQ(run(ElementType::kF32, c, {1e6f}, k, v, {}), std::vector<float>{3});
}

TEST_F(AttentionTest, Refusals) {
  EXPECT_EQ(attention(ElementType::kF32, shape(1, 1, 1, 1, 1, 257, 1), {}, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(attention(ElementType::kI32, shape(1, 1, 1, 1, 1, 1, 1), {}, stream_), cudaErrorInvalidValue);
}

TEST_F(AttentionTest, RotaryEmbedding) {
  for (const bool heads_first : {false, true}) {
    for (const bool interleaved : {false, true}) {
      for (const bool has_positions : {false, true}) {
        for (const int64_t half : {0, 3, 5}) {
          RotaryShape s;
          s.batch = 2, s.steps = 4, s.heads = 3, s.size = 10, s.half = half;
          s.table_rows = has_positions ? 6 : 8;
          s.heads_first = heads_first, s.interleaved = interleaved;
          const std::vector<int64_t> positions = {5, 0, 3, 3, 1, 2, 4, 0};
          const auto half_x = to_half(random_floats(240, 1));
          const auto x = to_floats(half_x);
          const auto cos = to_floats(to_half(random_floats(s.table_rows * half, 2)));
          const auto sin = to_floats(to_half(random_floats(s.table_rows * half, 3)));
          std::vector<double> expected(x.begin(), x.end());
          for (int64_t row = 0; row < 24; ++row) {
            const int64_t step = heads_first ? row % 4 : row / 3 % 4, at = row / 12 * 4 + step;
            for (int64_t n = 0; n < half; ++n) {
              const int64_t a = row * 10 + (interleaved ? 2 * n : n), b = a + (interleaved ? 1 : half);
              const int64_t table = (has_positions ? positions[at] : at) * half + n;
              expected[a] = static_cast<double>(x[a]) * cos[table] - static_cast<double>(x[b]) * sin[table];
              expected[b] = static_cast<double>(x[a]) * sin[table] + static_cast<double>(x[b]) * cos[table];
            }
          }
          const Input cosines(cos), sines(sin), half_cos(to_half(cos)), half_sin(to_half(sin)), places(positions);
          const int64_t* place = has_positions ? places.data<int64_t>() : nullptr;
          const Input input(x, 4), half_input(half_x, 2);
          const Output y(x.size() * 4, 4), half_y(x.size() * 2, 2);
          launch([&](cudaStream_t stream) {
            return rotary_embedding(ElementType::kF32, s, input.data(), cosines.data(), sines.data(), place, y.data(),
                                    stream);
          });
          launch([&](cudaStream_t stream) {
            return rotary_embedding(ElementType::kF16, s, half_input.data(), half_cos.data(), half_sin.data(), place,
                                    half_y.data(), stream);
          });
          EXPECT_EQ(count_mismatches(y.get(), expected, 1e-6), 0);
          EXPECT_EQ(count_mismatches(to_floats(half_y.get<__half>()), expected, 1e-3), 0);
        }
      }
    }
  }
}

TEST_F(AttentionTest, RotaryPositionOutsideTheTable) {
  RotaryShape s;
  s.batch = 1, s.steps = 3, s.heads = 1, s.size = 2, s.half = 1, s.table_rows = 1;
  const Input x(std::vector<float>{1, 2, 1, 2, 1, 2}), cos(std::vector<float>{1}), sin(std::vector<float>{0});
  const Input positions(std::vector<int64_t>{0, 1, -1});
  const Output y(6 * sizeof(float));
  launch([&](cudaStream_t stream) {
    return rotary_embedding(ElementType::kF32, s, x.data(), cos.data(), sin.data(), positions.data<int64_t>(), y.data(),
                            stream);
  });
  EXPECT_EQ(count_mismatches(y.get(), {1, 2, NAN, NAN, NAN, NAN}, 0), 0);
}

}  // namespace
}  // namespace tenon::cuda
