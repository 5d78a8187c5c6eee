#include "kernels/cpu/gather.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

// Indices that are in range, count from the end, or lie outside.
std::vector<int64_t> some_indices(int64_t count, int64_t size) {
  std::vector<int64_t> indices;
  for (int64_t n = 0; n < count; ++n) indices.push_back(n * 7919 % (4 * size) - 2 * size);
  if (count > 1) indices[0] = INT64_MIN, indices[1] = INT64_MAX;
  return indices;
}

int64_t nearest(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return std::min(std::max<int64_t>(index, 0), size - 1);
}

std::vector<unsigned char> noise(int64_t bytes) {
  std::vector<unsigned char> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  return data;
}

void check(const GatherShape& shape) {
  int64_t positions = 1;
  for (int d = 0; d < shape.depth; ++d) positions *= shape.sizes[d];
  const std::vector<int64_t> wide =
      some_indices((shape.shared ? 1 : shape.batches) * shape.tuples * shape.depth, shape.sizes[0]);
  for (const int size : {1, 2, 4, 8}) {
    const int64_t run = shape.inner * size;
    const std::vector<unsigned char> input = noise(shape.batches * positions * run);
    std::vector<unsigned char> expected;
    for (int64_t b = 0; b < shape.batches; ++b) {
      for (int64_t t = 0; t < shape.tuples; ++t) {
        int64_t at = b;
        for (int d = 0; d < shape.depth; ++d) {
          const int64_t index =
              wide[static_cast<size_t>(((shape.shared ? 0 : b) * shape.tuples + t) * shape.depth + d)];
          at = at * shape.sizes[d] + nearest(index, shape.sizes[d]);
        }
        expected.insert(expected.end(), input.begin() + at * run, input.begin() + (at + 1) * run);
      }
    }
    for (const int threads : {1, 3}) {
      Buffer output(expected.size(), static_cast<size_t>(size));
      gather(shape, {wide.data(), true}, size, input.data(), output.data<unsigned char>(), make_parallel(threads));
      EXPECT_TRUE(output.intact());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data<unsigned char>())) << size << " " << threads;
    }
  }
}

GatherShape make(int64_t batches, int64_t tuples, std::vector<int64_t> sizes, int64_t inner, bool shared) {
  GatherShape shape;
  shape.batches = batches;
  shape.tuples = tuples;
  shape.depth = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), shape.sizes);
  shape.inner = inner;
  shape.shared = shared;
  return shape;
}

TEST(Gather, BatchesTuplesRuns) {
  check(make(1, 1, {1}, 1, true));
  check(make(3, 7, {5}, 1, true));
  check(make(3, 7, {5}, 40, true));
  check(make(2, 500, {30}, 33, true));
  check(make(4, 9, {3, 4}, 5, false));
  check(make(2, 6, {2, 3, 2}, 1, false));
  check(make(0, 6, {2}, 1, false));
  check(make(2, 0, {2}, 1, true));
  check(make(2, 3, {2}, 0, true));
}

TEST(Gather, NarrowIndices) {
  const std::vector<int32_t> indices = {2, -1, INT32_MIN, INT32_MAX, 0};
  const std::vector<float> input = {5, 6, 7};
  std::vector<float> output(5);
  gather(make(1, 5, {3}, 1, true), {indices.data(), false}, 4, input.data(), output.data(), Parallel());
  EXPECT_EQ(output, (std::vector<float>{7, 7, 5, 7, 5}));
}

void check_elements(const std::vector<int64_t>& input_dims, const std::vector<int64_t>& index_dims, int axis) {
  const int rank = static_cast<int>(input_dims.size());
  int64_t inputs = 1, outputs = 1;
  for (int d = 0; d < rank; ++d) inputs *= input_dims[static_cast<size_t>(d)];
  for (int d = 0; d < rank; ++d) outputs *= index_dims[static_cast<size_t>(d)];
  const std::vector<int64_t> indices = some_indices(outputs, input_dims[static_cast<size_t>(axis)]);
  for (const int size : {1, 2, 4, 8}) {
    const std::vector<unsigned char> input = noise(inputs * size);
    std::vector<unsigned char> expected(static_cast<size_t>(outputs * size));
    for (int64_t n = 0; n < outputs; ++n) {
      int64_t rest = n, from = 0, step = 1;
      for (int d = rank; d-- > 0;) {
        const int64_t at = rest % index_dims[static_cast<size_t>(d)];
        rest /= index_dims[static_cast<size_t>(d)];
        from += (d == axis ? nearest(indices[static_cast<size_t>(n)], input_dims[static_cast<size_t>(d)]) : at) * step;
        step *= input_dims[static_cast<size_t>(d)];
      }
      std::copy_n(input.begin() + from * size, size, expected.begin() + n * size);
    }
    for (const int threads : {1, 3}) {
      Buffer output(expected.size(), static_cast<size_t>(size));
      gather_elements(rank, axis, input_dims.data(), index_dims.data(), {indices.data(), true}, size, input.data(),
                      output.data<unsigned char>(), make_parallel(threads));
      EXPECT_TRUE(output.intact());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data<unsigned char>())) << size << " " << threads;
    }
  }
}

TEST(Gather, Elements) {
  check_elements({5}, {9}, 0);
  check_elements({3, 4}, {7, 3}, 0);
  check_elements({3, 4}, {2, 9}, 1);
  check_elements({3, 40, 50}, {3, 60, 45}, 1);
  check_elements({3, 40, 50}, {2, 40, 700}, 2);
  check_elements({3, 4}, {0, 3}, 0);
  check_elements({3, 4}, {3, 0}, 1);
  check_elements({2, 2, 1, 3, 2, 1, 2, 3}, {2, 1, 1, 3, 5, 1, 2, 2}, 4);
}

}  // namespace
}  // namespace tenon::cpu
