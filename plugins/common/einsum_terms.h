// The equation of an Einstein summation, "bij,bjk->bik", read and matched with the shapes of its operands. Labels are
// numbers: 0 to 25 for A to Z, 26 to 51 for a to z, and from 52 on the axes that "..." stands for.
#ifndef TENON_PLUGINS_COMMON_EINSUM_TERMS_H_
#define TENON_PLUGINS_COMMON_EINSUM_TERMS_H_

#include <algorithm>
#include <string>
#include <tenon/sdk/tensor.hpp>
#include <vector>

namespace tenon::plugins {

struct EinsumTerms {
  static constexpr int kFirstEllipsis = 52;
  static constexpr int kNumLabels = kFirstEllipsis + TN_MAX_RANK;
  using Labels = std::vector<int>;

  std::vector<Labels> operands;  // one label for each axis
  Labels output;
  int64_t sizes[kNumLabels] = {};  // of labels that occur; axes of size 1 are repeated, as numpy does

  // Invalid if the equation is no equation or does not fit the shapes.
  static EinsumTerms make(std::string equation, const std::vector<Dims>& shapes) {
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    EinsumTerms terms;
    const size_t arrow = equation.find("->");
    std::vector<std::string> texts = split(equation.substr(0, arrow));
    if (texts.size() != shapes.size()) {
      throw Invalid(text("equation '", equation, "': it has ", texts.size(), " terms for ", shapes.size(), " inputs"));
    }
    int ellipsis = -1;  // the most axes that "..." stands for; -1: there is none
    for (size_t n = 0; n < texts.size(); ++n) {
      const int named = count_letters(texts[n]);
      const bool open = texts[n].find('.') != std::string::npos;
      if (open ? named > shapes[n].rank : named != shapes[n].rank) {
        throw Invalid(text("equation '", equation, "': the term '", texts[n], "' does not fit input ", n, " of shape ",
                           to_text(shapes[n])));
      }
      if (open) ellipsis = std::max(ellipsis, shapes[n].rank - named);
    }
    std::fill(terms.sizes, terms.sizes + kNumLabels, int64_t{-1});
    int uses[kNumLabels] = {};
    for (size_t n = 0; n < texts.size(); ++n) {
      terms.operands.push_back(read_term(texts[n], shapes[n].rank - count_letters(texts[n]), ellipsis, equation));
      for (int axis = 0; axis < shapes[n].rank; ++axis) {
        const int label = terms.operands[n][static_cast<size_t>(axis)];
        terms.add_size(label, shapes[n][axis], equation);
        ++uses[label];
      }
    }
    if (arrow != std::string::npos) {
      const std::string result = equation.substr(arrow + 2);
      if (ellipsis >= 0 && result.find('.') == std::string::npos) {
        throw Invalid(text("equation '", equation, "': expected '...' in the result, as the inputs have it"));
      }
      terms.output = read_term(result, std::max(ellipsis, 0), std::max(ellipsis, 0), equation);
      for (const int label : terms.output) {
        if (terms.sizes[label] < 0)
          throw Invalid(text("equation '", equation, "': no input has a label of the result"));
        if (std::count(terms.output.begin(), terms.output.end(), label) > 1) {
          throw Invalid(text("equation '", equation, "': a label is repeated in the result"));
        }
      }
    } else {
      for (int axis = 0; axis < ellipsis; ++axis) terms.output.push_back(kFirstEllipsis + axis);
      for (int label = 0; label < kFirstEllipsis; ++label) {
        if (uses[label] == 1) terms.output.push_back(label);
      }
    }
    return terms;
  }

  Dims output_dims() const {
    Dims dims;
    for (const int label : output) dims.push_back(sizes[label]);
    return dims;
  }

 private:
  static int label_of(char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    return -1;
  }
  static int count_letters(const std::string& term) {
    return static_cast<int>(std::count_if(term.begin(), term.end(), [](char c) { return label_of(c) >= 0; }));
  }
  static std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> terms(1);
    for (const char c : list) {
      if (c == ',') {
        terms.emplace_back();
      } else {
        terms.back() += c;
      }
    }
    return terms;
  }
  // The last `here` of the `most` axes that "..." stands for somewhere: shorter ones are aligned at the end.
  static Labels read_term(const std::string& term, int here, int most, const std::string& equation) {
    Labels labels;
    bool seen = false;
    for (size_t at = 0; at < term.size(); ++at) {
      if (const int label = label_of(term[at]); label >= 0) {
        labels.push_back(label);
      } else if (!seen && term.compare(at, 3, "...") == 0) {
        for (int axis = most - here; axis < most; ++axis) labels.push_back(kFirstEllipsis + axis);
        at += 2;
        seen = true;
      } else {
        throw Invalid(
            text("equation '", equation, "': expected letters and at most one '...' in the term '", term, "'"));
      }
    }
    return labels;
  }
  void add_size(int label, int64_t size, const std::string& equation) {
    int64_t& known = sizes[label];
    if (known < 0 || known == 1) {
      known = size;
    } else if (size != 1 && size != known) {
      throw Invalid(text("equation '", equation, "': a label stands for sizes ", known, " and ", size));
    }
  }
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_EINSUM_TERMS_H_
