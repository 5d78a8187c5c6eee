// tenon.tf_idf/1: how often the n-grams of a pool occur in rows of integers.
#include <algorithm>
#include <map>
#include <string>
#include <tenon/sdk/plugin.hpp>
#include <vector>

namespace tenon::plugins {
namespace {

// The attributes, checked.
struct Pool {
  int64_t least, most, skips;
  int64_t columns = 0;
  std::map<std::vector<int64_t>, size_t> ngrams;  // the number of each
  std::vector<int64_t> places;                    // of each n-gram in a row of the output
  std::vector<double> weights;
  bool counted, weighted;

  explicit Pool(const Attrs& attrs)
      : least(attrs.i64("min_gram_length")),
        most(attrs.i64("max_gram_length")),
        skips(attrs.i64("max_skip_count")),
        counted(attrs.str("mode") != "IDF"),
        weighted(attrs.str("mode") != "TF") {
    if (least > most) {
      throw Invalid(text("attribute 'max_gram_length': expected at least min_gram_length ", least, ", found ", most));
    }
    const List<int64_t> pool = attrs.i64s("pool"), starts = attrs.i64s("ngram_counts"),
                        indexes = attrs.i64s("ngram_indexes");
    places.assign(indexes.begin(), indexes.end());
    for (const int64_t place : places) {
      if (place < 0 || place >= INT32_MAX) {
        throw Invalid(text("attribute 'ngram_indexes': expected 0 to ", INT32_MAX - 1, ", found ", place));
      }
      columns = std::max(columns, place + 1);
    }
    weights.assign(places.size(), 1.0);
    if (const List<double> given = attrs.f64s("weights"); given.size() != 0) {
      if (given.size() != indexes.size()) {
        throw Invalid(text("attribute 'weights': expected ", indexes.size(), " of them, found ", given.size()));
      }
      weights.assign(given.begin(), given.end());
    }
    size_t number = 0;
    for (int length = 1; length <= starts.size(); ++length) {
      const int64_t begin = starts[length - 1];
      const int64_t end = length < starts.size() ? starts[length] : pool.size();
      if (begin < 0 || end < begin || end > pool.size() || (end - begin) % length != 0) {
        throw Invalid(text("attribute 'ngram_counts': the ", length, "-grams cannot lie from ", begin, " to ", end,
                           " of a pool of ", pool.size()));
      }
      for (int64_t at = begin; at < end; at += length) {
        ngrams.emplace(std::vector<int64_t>(pool.begin() + at, pool.begin() + at + length), number++);
      }
    }
    if (number != places.size()) {
      throw Invalid(text("attribute 'ngram_indexes': expected ", number, " of them as n-grams in the pool, found ",
                         places.size()));
    }
    most = std::min<int64_t>(most, starts.size());  // longer ones are not in the pool
  }

  // Adds up what a row of `size` integers holds. Single integers are counted once, whatever is skipped.
  void count(const Tensor& x, int64_t first, int64_t size, std::vector<double>* row) const {
    std::fill(row->begin(), row->end(), 0.0);
    for (int64_t step = 1; step - 1 <= skips && step <= std::max<int64_t>(size, 1); ++step) {
      for (int64_t begin = 0; begin < size; ++begin) {
        std::vector<int64_t> ngram;
        for (int64_t at = begin; at < size && static_cast<int64_t>(ngram.size()) < most; at += step) {
          ngram.push_back(x.integer(first + at));
          const auto length = static_cast<int64_t>(ngram.size());
          if (length < least || (length == 1 && step > 1)) continue;
          const auto found = ngrams.find(ngram);
          if (found == ngrams.end()) continue;
          double& cell = (*row)[static_cast<size_t>(places[found->second])];
          const double weight = weighted ? weights[found->second] : 1.0;
          cell = counted ? cell + weight : weight;
        }
      }
    }
  }
};

void tf_idf_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const Pool pool(question.attrs());
  if (x.rank() < 1 || x.rank() > 2 || (x.dtype() != TN_I32 && x.dtype() != TN_I64)) {
    throw Invalid(
        text("input x: expected i32 or i64 [C] or [N,C], found ", dtype_name(x.dtype()), " ", to_text(x.dims())));
  }
  question.output(0, TN_F32, x.rank() == 1 ? Dims{pool.columns} : Dims{x.dim(0), pool.columns});
}

void tf_idf_reference(const Reference& call) {
  const Tensor x = call.input(0);
  const Pool pool(call.attrs());
  const int64_t size = x.dim(x.rank() - 1);
  std::vector<double> counts(static_cast<size_t>(pool.columns));
  int64_t known = -1;  // the row that `counts` belong to
  call.fill<float>(0, [&](const int64_t*, int64_t linear) {
    if (const int64_t row = linear / pool.columns; row != known) {
      known = row;
      pool.count(x, row * size, size, &counts);
    }
    return static_cast<float>(counts[static_cast<size_t>(linear % pool.columns)]);
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.tf_idf", "1", "Apache-2.0",
             tenon::op("tenon.tf_idf/1")
                 .doc("How often n-grams of a pool occur in each row (ONNX TfIdfVectorizer-9). The items of an n-gram "
                      "are 1, 2, ... max_skip_count + 1 apart")
                 .attr_str("mode", "TF: counts; IDF: the weight of what occurs; TFIDF: count times weight")
                 .required()
                 .range("TF|IDF|TFIDF")
                 .attr_i64("min_gram_length", "shortest n-grams that are counted")
                 .required()
                 .range("[1,)")
                 .attr_i64("max_gram_length", "longest n-grams that are counted")
                 .required()
                 .range("[1,)")
                 .attr_i64("max_skip_count")
                 .required()
                 .range("[0,)")
                 .attr_i64s("pool", "all 1-grams, then all 2-grams, ...")
                 .required()
                 .attr_i64s("ngram_counts", "where the 1-grams, 2-grams, ... begin in the pool")
                 .required()
                 .attr_i64s("ngram_indexes", "the column of the output for each n-gram")
                 .required()
                 .attr_f64s("weights", "of each n-gram; default: 1")
                 .default_value("")
                 .input("x", "[C] or [N,C], i32 or i64")
                 .output("y", "f32 [columns] or [N,columns]")
                 .infer(tenon::plugins::tf_idf_infer)
                 .reference(tenon::plugins::tf_idf_reference)
                 .tolerance(1e-6, 1e-6))
