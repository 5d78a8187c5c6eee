// The text patterns of fusion rules: parser and matcher. The grammar is that of plugin/fusion.h:
//   op    = id { "|" id } "(" [ arg { "," arg } ] ")" [ "*" ]
//   arg   = ( value | op ) [ "?" ]
//   value = "$" name [ ":const" ]

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/graph/passes.h"

namespace tenon {
namespace {

/// Deep enough for every real rule, and safe for the parser's recursion.
constexpr int kMaxDepth = 64;
constexpr std::uint32_t kMaxTerms = 256;
/// Steps of one match attempt: commutative ops make the number of ways exponential in the worst case.
constexpr int kMaxSteps = 20000;

struct PatternTerm {
  std::string value;             ///< name of `$name`; empty for an op
  std::vector<std::string> ops;  ///< alternatives; empty for a value
  std::vector<PatternTerm> args;
  std::uint32_t number = 0;  ///< of an op, in text order
  bool constant = false;
  bool optional = false;
  bool shared = false;  ///< `*`: may have other users
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Result<PatternTerm> parse() {
    PatternTerm root;
    if (peek() == '$') return error("an op id, because the root of a pattern is an op");
    TENON_RETURN_IF_ERROR(op(&root, 0));
    if (peek() != 0 || at_ < text_.size()) return error("the end of the pattern");
    return root;
  }

  std::uint32_t num_ops() const { return num_ops_; }

 private:
  /// The next character after blanks; 0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  Status error(const std::string& expected) {
    peek();
    std::string found = "the end";
    if (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      found = c >= 0x20 && c < 0x7F ? fmt::format("'{}'", text_[at_]) : fmt::format("byte 0x{:02x}", c);
    }
    return {Code::kInvalid, fmt::format("pattern, column {}: expected {}, found {}", at_ + 1, expected, found)};
  }

  Status name(std::string* out) {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == start) return error("a name after '$'");
    *out = text_.substr(start, at_ - start);
    return {};
  }

  Status op_id(std::string* out) {
    peek();
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '.' || text_[at_] == '-')) ++at_;
    if (at_ == start) return error("an op id such as vendor.op/1");
    if (at_ == text_.size() || text_[at_] != '/') return error("'/' and a version after the op's name");
    ++at_;
    const std::size_t version = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == version) return error("the version number of the op id");
    *out = text_.substr(start, at_ - start);
    return {};
  }

  Status op(PatternTerm* term, int depth) {
    if (depth > kMaxDepth) return error(fmt::format("at most {} nested ops", kMaxDepth));
    do {
      term->ops.emplace_back();
      TENON_RETURN_IF_ERROR(op_id(&term->ops.back()));
    } while (take('|'));
    term->number = num_ops_++;
    if (!take('(')) return error("'(' with the op's inputs");
    if (!take(')')) {
      do {
        if (++num_terms_ > kMaxTerms) return error(fmt::format("at most {} terms", kMaxTerms));
        PatternTerm arg;
        if (take('$')) {
          TENON_RETURN_IF_ERROR(value(&arg));
        } else {
          TENON_RETURN_IF_ERROR(op(&arg, depth + 1));
        }
        arg.optional = take('?');
        term->args.push_back(std::move(arg));
      } while (take(','));
      if (!take(')')) return error("',' or ')'");
    }
    term->shared = take('*');
    return {};
  }

  Status value(PatternTerm* term) {
    TENON_RETURN_IF_ERROR(name(&term->value));
    if (!take(':')) return {};
    if (peek() != 'c' || text_.compare(at_, 5, "const") != 0) return error("const");
    at_ += 5;
    if (at_ < text_.size() && is_name(text_[at_])) return error("',', '?' or ')' after const");
    term->constant = true;
    return {};
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::uint32_t num_ops_ = 0;
  std::uint32_t num_terms_ = 0;
};

/// Backtracking matcher: each step gets what remains to be done, so that a wrong order of a commutative op's operands
/// can be taken back even when the mismatch shows elsewhere.
class Matcher {
 public:
  using Next = std::function<bool()>;

  Matcher(const Graph& graph, Match* match) : graph_(graph), match_(match) {}

  bool node(const PatternTerm& term, NodeId id, bool root, const Next& next) {
    if (--steps_ < 0) return false;
    const Node& node = graph_.node(id);
    if (!node.alive) return false;
    const std::string_view op_id = node.op.op->id;
    if (std::find(term.ops.begin(), term.ops.end(), op_id) == term.ops.end()) return false;
    // A rule does not know of epilogues, so it would lose them.
    if (std::any_of(node.epilogues.begin(), node.epilogues.end(), [](const Expression& e) { return !e.empty(); })) {
      return false;
    }
    if (!root && !term.shared && !used_once(node)) return false;
    for (std::size_t i = term.args.size(); i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoId) return false;
    }
    const NodeId before = match_->nodes[term.number];
    match_->nodes[term.number] = id;
    if (args(term, node.inputs, 0, next)) return true;
    const bool commutative = (node.op.op->flags & TN_OP_COMMUTATIVE) != 0 && term.args.size() == 2 &&
                             node.inputs.size() >= 2 && node.inputs[0] != node.inputs[1];
    if (commutative) {
      std::vector<ValueId> swapped = node.inputs;
      std::swap(swapped[0], swapped[1]);
      if (args(term, swapped, 0, next)) return true;
    }
    match_->nodes[term.number] = before;
    return false;
  }

 private:
  bool used_once(const Node& node) const {
    std::size_t users = 0;
    for (const ValueId output : node.outputs) {
      if (graph_.is_output(output)) return false;
      users += graph_.users(output).size();
    }
    return users == 1;
  }

  bool args(const PatternTerm& term, const std::vector<ValueId>& inputs, std::size_t i, const Next& next) {
    if (i == term.args.size()) return next();
    const ValueId input = i < inputs.size() ? inputs[i] : kNoId;
    return arg(term.args[i], input, [&] { return args(term, inputs, i + 1, next); });
  }

  bool arg(const PatternTerm& term, ValueId input, const Next& next) {
    if (--steps_ < 0) return false;
    if (input == kNoId && !term.optional) return false;
    if (term.value.empty()) {
      if (input == kNoId) return next();
      const NodeId producer = graph_.value(input).producer;
      return producer != kNoId && node(term, producer, false, next);
    }
    if (term.constant && input != kNoId && !graph_.value(input).is_constant()) return false;
    const auto [bound, is_new] = match_->values.emplace(term.value, input);
    if (!is_new) return bound->second == input && next();
    if (next()) return true;
    match_->values.erase(term.value);
    return false;
  }

  const Graph& graph_;
  Match* match_;
  int steps_ = kMaxSteps;
};

/// Values inside parts that are absent are absent too.
void bind_absent(const PatternTerm& term, Match* match) {
  if (!term.value.empty()) match->values.emplace(term.value, kNoId);
  for (const PatternTerm& arg : term.args) bind_absent(arg, match);
}

}  // namespace

struct Pattern::Term {
  PatternTerm root;
  std::uint32_t num_ops = 0;
};

Result<Pattern> Pattern::parse(const std::string& text) {
  Parser parser(text);
  TENON_ASSIGN(PatternTerm root, parser.parse());
  auto term = std::make_shared<Term>();
  term->root = std::move(root);
  term->num_ops = parser.num_ops();
  Pattern pattern;
  pattern.root_ = std::move(term);
  return pattern;
}

bool Pattern::match(const Graph& graph, NodeId node, Match* out) const {
  if (root_ == nullptr || node >= graph.nodes().size()) return false;
  Match match;
  match.nodes.assign(root_->num_ops, kNoId);
  Matcher matcher(graph, &match);
  if (!matcher.node(root_->root, node, true, [] { return true; })) return false;
  bind_absent(root_->root, &match);
  *out = std::move(match);
  return true;
}

const std::vector<std::string>& Pattern::root_ops() const {
  static const std::vector<std::string> none;
  return root_ != nullptr ? root_->root.ops : none;
}

}  // namespace tenon
