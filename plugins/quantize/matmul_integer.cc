// tenon.matmul_integer/1: products of matrices of 8-bit integers with zero points.
#include "kernels/cpu/gemm_integer.h"
#include "plugins/common/checked.h"
#include "plugins/common/parallel.h"
#include "plugins/quantize/quantize.h"

namespace tenon::plugins {
namespace {

constexpr int kA = 0, kB = 1, kAZero = 2, kBZero = 3;

// One operand as [batch..., rows, columns]: strides of its matrices and of the zero points.
struct Operand {
  Dims dims;                                // of rank 2 or more
  int64_t batch_strides[TN_MAX_RANK] = {};  // by axis of the result's batch
  int64_t zero_batch_strides[TN_MAX_RANK] = {};
  int64_t zero_row = 0, zero_column = 0;

  int64_t rows() const { return dims[dims.rank - 2]; }
  int64_t columns() const { return dims[dims.rank - 1]; }
  Dims batch() const {
    Dims result = dims;
    result.rank -= 2;
    return result;
  }
  void set_strides(const Dims& batch_dims, const Dims* zero) {
    broadcast_strides(batch(), batch_dims, batch_strides);
    for (int n = 0; n < batch_dims.rank; ++n) batch_strides[n] *= rows() * columns();
    if (zero == nullptr) return;
    int64_t strides[TN_MAX_RANK] = {};
    broadcast_strides(*zero, dims, strides);
    zero_row = strides[dims.rank - 2];
    zero_column = strides[dims.rank - 1];
    const int first = batch_dims.rank - (dims.rank - 2);
    for (int n = first; n < batch_dims.rank; ++n) {
      zero_batch_strides[n] = dims[n - first] == 1 ? 0 : strides[n - first];
    }
  }
};

struct MatmulInteger {
  Operand a, b;
  Dims batch, result;

  // As numpy.matmul. Null zero points are absent. Invalid names the input that does not fit.
  static MatmulInteger make(const Dims& a, const Dims& b, const Dims* a_zero, const Dims* b_zero) {
    if (a.rank < 1 || b.rank < 1) {
      throw Invalid(text("expected inputs a and b of at least one axis, found ", to_text(a), " and ", to_text(b)));
    }
    MatmulInteger g;
    g.a.dims = a.rank == 1 ? Dims{1, a[0]} : a;
    g.b.dims = b.rank == 1 ? Dims{b[0], 1} : b;
    if (g.a.columns() != g.b.rows()) {
      throw Invalid(
          text("input b: expected ", g.a.columns(), " rows for the columns of a ", to_text(a), ", found ", to_text(b)));
    }
    g.batch = broadcast_dims(g.a.batch(), g.b.batch());
    g.a.set_strides(g.batch, checked_zero(a_zero, g.a.dims, "a_zero_point"));
    g.b.set_strides(g.batch, checked_zero(b_zero, g.b.dims, "b_zero_point"));
    g.result = g.batch;
    if (a.rank > 1) g.result.push_back(g.a.rows());
    if (b.rank > 1) g.result.push_back(g.b.columns());
    return g;
  }
  int64_t m() const { return a.rows(); }
  int64_t n() const { return b.columns(); }
  int64_t k() const { return a.columns(); }

 private:
  static const Dims* checked_zero(const Dims* zero, const Dims& dims, const char* name) {
    if (zero != nullptr && broadcast_dims(dims, *zero) != dims) {
      throw Invalid(
          text("input ", name, ": expected a shape that broadcasts to ", to_text(dims), ", found ", to_text(*zero)));
    }
    return zero;
  }
};

// Question: Infer or Reference.
template <class Question>
MatmulInteger geometry_of(const Question& question) {
  Dims a_zero, b_zero;
  if (question.has_input(kAZero)) a_zero = question.input(kAZero).dims();
  if (question.has_input(kBZero)) b_zero = question.input(kBZero).dims();
  return MatmulInteger::make(question.input(kA).dims(), question.input(kB).dims(),
                             question.has_input(kAZero) ? &a_zero : nullptr,
                             question.has_input(kBZero) ? &b_zero : nullptr);
}

void matmul_integer_infer(const Infer& question) {
  for (const int n : {kA, kB}) {
    const int32_t dtype = question.input(n).dtype();
    const char* name = n == kA ? "a" : "b";
    if (dtype != TN_U8 && dtype != TN_I8) {
      throw Invalid(text("input ", name, ": expected u8 or i8, found ", dtype_name(dtype)));
    }
    const int zero = n == kA ? kAZero : kBZero;
    if (question.has_input(zero) && question.input(zero).dtype() != dtype) {
      throw Invalid(text("input ", name, "_zero_point: expected ", dtype_name(dtype), " as of ", name, ", found ",
                         dtype_name(question.input(zero).dtype())));
    }
  }
  question.output(0, TN_I32, geometry_of(question).result);
}

// Matrix number `index` of the batch.
template <class T>
cpu::IntegerMatrix<T> matrix_of(const Operand& operand, const int64_t* index, int rank, const void* data,
                                const void* zero_points) {
  cpu::IntegerMatrix<T> matrix;
  matrix.data = static_cast<const T*>(data) + offset_of(index, operand.batch_strides, rank);
  matrix.rows = operand.rows();
  matrix.row_stride = operand.columns();
  matrix.column_stride = 1;
  if (zero_points == nullptr) return matrix;
  matrix.zero_points = static_cast<const T*>(zero_points) + offset_of(index, operand.zero_batch_strides, rank);
  matrix.zero_row_stride = operand.zero_row;
  matrix.zero_column_stride = operand.zero_column;
  return matrix;
}

// Calls body(A(), B()) with the C++ types of the operands.
template <class Body>
void visit_bytes(int32_t a, int32_t b, const Body& body) {
  const auto second = [&](auto first) { return b == TN_U8 ? body(first, uint8_t()) : body(first, int8_t()); };
  return a == TN_U8 ? second(uint8_t()) : second(int8_t());
}

void matmul_integer_reference(const Reference& call) {
  const MatmulInteger g = geometry_of(call);
  const bool has_rows = call.input(kA).rank() > 1;
  const bool has_columns = call.input(kB).rank() > 1;
  const void* a_zero = call.has_input(kAZero) ? call.input(kAZero).data() : nullptr;
  const void* b_zero = call.has_input(kBZero) ? call.input(kBZero).data() : nullptr;
  visit_bytes(call.input(kA).dtype(), call.input(kB).dtype(), [&](auto a_type, auto b_type) {
    call.fill<int32_t>(0, [&](const int64_t* index, int64_t) {
      const auto a = matrix_of<decltype(a_type)>(g.a, index, g.batch.rank, call.input(kA).data(), a_zero);
      const auto b = matrix_of<decltype(b_type)>(g.b, index, g.batch.rank, call.input(kB).data(), b_zero);
      const int64_t row = has_rows ? index[g.batch.rank] : 0;
      const int64_t column = has_columns ? index[g.batch.rank + (has_rows ? 1 : 0)] : 0;
      uint32_t sum = 0;  // wraps
      for (int64_t k = 0; k < g.k(); ++k) sum += static_cast<uint32_t>(int32_t{a.at(row, k)} * b.at(k, column));
      return static_cast<int32_t>(sum);
    });
  });
}

class MatmulIntegerKernel final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    MatmulIntegerKernel instance;
    instance.set_site(site);
    tactics.add("", instance.sizes_.workspace);
  }
  void configure(const Config& config) override { set_site(config.site()); }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    visit_bytes(inputs[kA].dtype, inputs[kB].dtype, [&](auto a, auto b) {
      multiply<decltype(a), decltype(b)>(exec, inputs, static_cast<int32_t*>(outputs[0].data));
    });
  }

 private:
  void set_site(const Site& site) {
    has_a_zero_ = site.has_input(kAZero);
    has_b_zero_ = site.has_input(kBZero);
    const Dims a_zero = has_a_zero_ ? site.max_dims(kAZero) : Dims();
    const Dims b_zero = has_b_zero_ ? site.max_dims(kBZero) : Dims();
    g_ = MatmulInteger::make(site.max_dims(kA), site.max_dims(kB), has_a_zero_ ? &a_zero : nullptr,
                             has_b_zero_ ? &b_zero : nullptr);
    const int64_t packed = checked_product(g_.m(), 4 * cpu::integer_pairs(g_.k()), "packed a");
    a_bytes_ = static_cast<uint64_t>(packed + 63) / 64 * 64;
    sizes_.workspace = a_bytes_ + static_cast<uint64_t>(cpu::gemm_integer_scratch(site.threads()));
  }

  template <class A, class B>
  void multiply(const Exec& exec, const TnTensor* inputs, int32_t* y) const {
    const cpu::Parallel parallel = to_parallel(exec);
    const void* a_zero = has_a_zero_ ? inputs[kAZero].data : nullptr;
    const void* b_zero = has_b_zero_ ? inputs[kBZero].data : nullptr;
    auto* packed = exec.workspace<int16_t>();
    const int64_t row = 2 * cpu::integer_pairs(g_.k());
    TnBox all{};
    for (int n = 0; n < g_.batch.rank; ++n) all.size[n] = g_.batch[n];
    for_each_in_box(g_.batch, all, [&](const int64_t* index, int64_t linear, int64_t) {
      const auto a = matrix_of<A>(g_.a, index, g_.batch.rank, inputs[kA].data, a_zero);
      const auto b = matrix_of<B>(g_.b, index, g_.batch.rank, inputs[kB].data, b_zero);
      int32_t* c = y + linear * g_.m() * g_.n();
      cpu::parallel_ranges(parallel, g_.m(), 1 + 4096 / (row + g_.n()), [&](int64_t begin, int64_t end) {
        cpu::pack_integer_rows(a, g_.k(), begin, end, packed);
        std::fill(c + begin * g_.n(), c + end * g_.n(), 0);
      });
      cpu::IntegerGemm job;
      job.m = g_.m();
      job.n = g_.n();
      job.k = g_.k();
      job.a = packed;
      job.pack_b = cpu::pack_integer_panel<B>;
      job.context = &b;
      job.c = c;
      job.ldc = g_.n();
      cpu::gemm_integer(job, exec.workspace<char>() + a_bytes_, parallel, cpu::detect_isa());
    });
  }

  MatmulInteger g_;
  bool has_a_zero_ = false, has_b_zero_ = false;
  uint64_t a_bytes_ = 0;
  Sizes sizes_;
};

}  // namespace

Definitions matmul_integer_definitions() {
  Kernel kernel_definition = kernel<MatmulIntegerKernel>("tenon.matmul_integer/1", "tenon.matmul_integer.gemm");
  for (const int32_t a : {TN_U8, TN_I8}) {
    for (const int32_t b : {TN_U8, TN_I8}) kernel_definition.combo({row(a), row(b), row(a), row(b)}, {row(TN_I32)});
  }
  return {op("tenon.matmul_integer/1")
              .doc("Product of matrices of 8-bit integers, as ONNX's MatMulInteger. y[..., m, n] = sum over k of "
                   "(a[..., m, k] - a_zero_point) * (b[..., k, n] - b_zero_point), modulo 2^32; batch dims broadcast "
                   "as numpy's do")
              .input("a", "[..., M, K] or [K], u8 or i8")
              .input("b", "[..., K, N] or [K], u8 or i8")
              .input("a_zero_point", "broadcast to a's shape, a's dtype")
              .optional()
              .input("b_zero_point", "broadcast to b's shape, b's dtype")
              .optional()
              .output("y", "[..., M, N], i32")
              .infer(matmul_integer_infer)
              .reference(matmul_integer_reference)
              .generate(generate_bytes),
          kernel_definition.tactics(MatmulIntegerKernel::tactics).deterministic()};
}

}  // namespace tenon::plugins
