// Expected values by hand, from the specification of ONNX TfIdfVectorizer-9.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class TfIdfTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("tf_idf")); }
  // 1-grams 2, 3, 5 and 2-grams (5,6), (7,8), (6,7) with columns of their own.
  OpTester tf_idf(const std::string& mode, int64_t least, int64_t most, int64_t skips) {
    OpTester tester(host_, "tenon.tf_idf/1");
    tester.attr("mode", mode).attr("min_gram_length", least).attr("max_gram_length", most);
    tester.attr("max_skip_count", skips).attr("pool", std::vector<int64_t>{2, 3, 5, 5, 6, 7, 8, 6, 7});
    tester.attr("ngram_counts", std::vector<int64_t>{0, 3})
        .attr("ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 6});
    return tester;
  }
  TestHost host_;
};

const std::vector<int32_t> kX = {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8};

TEST_F(TfIdfTest, Counts) {
  tf_idf("TF", 2, 2, 0).input({12}, kX).expect({7}, {0, 0, 0, 1, 1, 0, 1});
  tf_idf("TF", 1, 2, 0).input({12}, kX).expect({7}, {0, 3, 1, 1, 1, 0, 1});
  tf_idf("TF", 1, 1, 3).input({12}, kX).expect({7}, {0, 3, 1, 0, 0, 0, 0});
  // Rows: 7 8, then 7 and 8 with 6 between them.
  tf_idf("TF", 2, 2, 0)
      .input<int64_t>({2, 3}, {7, 8, 5, 7, 6, 8})
      .expect({2, 7}, {0, 0, 0, 0, 1, 0, 0,  //
                       0, 0, 0, 0, 0, 0, 0});
  tf_idf("TF", 2, 2, 1)
      .input<int64_t>({2, 3}, {7, 8, 5, 7, 6, 8})
      .expect({2, 7}, {0, 0, 0, 0, 1, 0, 0,  //
                       0, 0, 0, 0, 1, 0, 0});
  tf_idf("TF", 2, 5, INT64_MAX).input<int64_t>({0}, {}).expect({7}, std::vector<double>(7, 0));
}

TEST_F(TfIdfTest, Weights) {
  const std::vector<double> weights = {1, 10, 100, 1000, 2, 3};
  tf_idf("IDF", 1, 2, 0).attr("weights", weights).input({12}, kX).expect({7}, {0, 10, 100, 1000, 2, 0, 3});
  tf_idf("TFIDF", 1, 2, 0).attr("weights", weights).input({12}, kX).expect({7}, {0, 30, 100, 1000, 2, 0, 3});
  tf_idf("IDF", 1, 1, 0).input({12}, kX).expect({7}, {0, 1, 1, 0, 0, 0, 0});
}

TEST_F(TfIdfTest, WrongAttributes) {
  tf_idf("TF", 2, 1, 0).input({12}, kX).expect_invalid({"max_gram_length", "2", "1"});
  tf_idf("TF", 1, 2, 0)
      .attr("ngram_counts", std::vector<int64_t>{0, 4})
      .input({12}, kX)
      .expect_invalid({"ngram_counts"});
  tf_idf("TF", 1, 2, 0)
      .attr("ngram_counts", std::vector<int64_t>{5, 3})
      .input({12}, kX)
      .expect_invalid({"ngram_counts"});
  tf_idf("TF", 1, 2, 0)
      .attr("ngram_indexes", std::vector<int64_t>{0})
      .input({12}, kX)
      .expect_invalid({"ngram_indexes"});
  tf_idf("TF", 1, 2, 0).attr("weights", std::vector<double>{1}).input({12}, kX).expect_invalid({"weights", "6", "1"});
  tf_idf("TF", 1, 2, 0).random_input({12}).expect_invalid({"i64", "f32"});
}

}  // namespace
}  // namespace tenon::testing
