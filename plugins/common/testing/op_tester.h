// OpTester: one op on one set of inputs. Compares the op's reference with values that the test gives, asks the
// reference for parts of its output, and compares every tactic of every loaded kernel with the reference. Where kernels
// of GPUs are tested (device.h), those of f16 see what is f32 here rounded to it.
//
//   OpTester(host, "tenon.relu/1").input({3}, {-1, 0, 2}).expect({3}, {0, 0, 2}).expect_kernels();
#ifndef TENON_PLUGINS_COMMON_TESTING_OP_TESTER_H_
#define TENON_PLUGINS_COMMON_TESTING_OP_TESTER_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tenon/sdk/expressions.hpp>
#include <tenon/sdk/tensor.hpp>
#include <vector>

#include "plugins/common/testing/test_host.h"

namespace tenon::testing {

// A packed row-major tensor with its memory.
struct HostArray {
  int32_t dtype = TN_DTYPE_NONE;
  Dims dims;
  std::vector<char> bytes;
  bool constant = false;
  int32_t declared = TN_DTYPE_NONE;  // what infer is told if it is not `dtype`: a dtype that references see widened

  template <class T>
  std::vector<T> values() const {
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  TnTensor tensor() const;
};

class OpTester {
 public:
  OpTester(TestHost& host, const std::string& op_id);

  OpTester& attr(const std::string& name, AttrValue value);
  template <class T = float>
  OpTester& input(const Dims& dims, const std::vector<T>& values) {
    HostArray array;
    array.dtype = dtype_of<T>();
    array.dims = dims;
    array.bytes.resize(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    inputs_.push_back(array);
    return *this;
  }
  // bool, which has no std::vector of bytes.
  OpTester& bools(const Dims& dims, const std::vector<uint8_t>& values) {
    input(dims, values);
    inputs_.back().dtype = TN_BOOL;
    return *this;
  }
  // Normal numbers, the same for the same number of earlier inputs.
  OpTester& random_input(const Dims& dims, double scale = 1.0);
  // An absent optional input.
  OpTester& absent();
  // The input before has this dtype, and its values are those that the reference sees: f32 for f16 (see op.h). Kernels
  // get them in f16 or bf16; those of other dtypes that references see widened are for `expect` only.
  OpTester& declared_as(int32_t dtype);
  // The input before is constant.
  OpTester& constant();
  // The op has `count` outputs, of which `checked` is the one that the functions below compare. Default: 1 and 0.
  OpTester& outputs(int count, int checked);
  // Kernels are asked to apply it themselves, after those given before; those that do not are left out.
  OpTester& epilogue(const Activation& activation);

  // The reference gives exactly these dims, and these values within `tolerance`; any box of it equals the same part of
  // the whole.
  OpTester& expect(const Dims& dims, const std::vector<double>& values, double tolerance = 1e-6);
  // The same for an op whose dims depend on contents: infer_bound gives these dims, and the reference fills them with
  // `values`, 0 beyond what the data give.
  OpTester& expect_bound(const Dims& dims, const std::vector<double>& values, double tolerance = 1e-6);
  // Every tactic of every loaded kernel that takes the site agrees with the reference within the op's tolerance, writes
  // every element, fills blocks with zeros, gives the same bits for one and three threads, and works in place where it
  // says so. At least one tactic of each kernel of `required` runs.
  OpTester& expect_kernels(const std::vector<std::string>& required = {});
  // infer fails and its text holds each of `words`.
  OpTester& expect_invalid(const std::vector<std::string>& words);

  // "kernel params" of every tactic that expect_kernels ran.
  const std::set<std::string>& tactics_run() const { return tactics_run_; }
  HostArray reference();

 private:
  struct Job;
  using Question = TnStatus(TN_CALL*)(const TnHost*, const TnOp*, TnInfer*);

  // What `question` gives for the outputs: infer or infer_bound.
  bool infer(Question question, std::vector<HostArray>* outputs);
  bool evaluate(std::vector<HostArray> outputs, const TnBox& box, HostArray* checked);
  std::vector<HostArray> references(Question question);
  OpTester& compare(const std::vector<HostArray>& all, const Dims& dims, const std::vector<double>& values,
                    double tolerance);
  bool to_halves();
  std::set<std::string> run_kernels(bool cuda_only);
  void run_kernel(const TnKernel& kernel, const std::vector<HostArray>& outputs, std::set<std::string>* ran);
  void run_tactic(const Job& job, const TnTactic& tactic, const std::vector<HostArray>& outputs);

  TestHost& host_;
  std::string op_id_;
  const TnOp* op_;
  AttrMap attrs_;
  std::vector<HostArray> inputs_;
  int num_outputs_ = 1;
  int checked_ = 0;
  std::vector<Activation> epilogue_;
  std::set<std::string> tactics_run_;
  std::map<std::string, std::string> declined_;  // the last reason of each kernel
};

}  // namespace tenon::testing

#endif  // TENON_PLUGINS_COMMON_TESTING_OP_TESTER_H_
