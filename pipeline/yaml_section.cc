#include "pipeline/yaml_section.h"

#include <algorithm>
#include <sstream>

#include "pipeline/units.h"

namespace tenon::pipeline {
namespace {

const char* kind_text(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return "a single value";
    case YAML::NodeType::Null:
      return "no value";
    case YAML::NodeType::Undefined:
      break;
  }
  return "nothing";
}

std::string join(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string did_you_mean(const std::string& word, const std::string& nearest, std::span<const std::string> valid) {
  if (!nearest.empty() && similar_words(word, nearest)) return "; did you mean '" + nearest + "'?";
  return "; valid: " + join(valid);
}

std::string plain(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

std::string range_text(const std::string& low, const std::string& high) { return " from " + low + " to " + high; }

}  // namespace

void YamlReader::problem(const YAML::Mark& mark, std::string key, std::string message, std::string nearest) {
  const bool placed = !mark.is_null();
  problems.push_back({placed ? mark.line + 1 : 0, placed ? mark.column + 1 : 0, std::move(key), std::move(message),
                      std::move(nearest)});
}

YamlSection::YamlSection(YamlReader& reader, const YAML::Node& node, std::string path)
    : reader_(&reader), path_(std::move(path)), mark_(node.IsDefined() ? node.Mark() : YAML::Mark::null_mark()) {
  if (!node.IsDefined() || node.IsNull()) return;
  if (!node.IsMap()) {
    reader_->problem(mark_, path_,
                     (path_.empty() ? std::string("the file") : "'" + path_ + "'") +
                         ": expected a mapping (key: value), found " + kind_text(node));
    return;
  }
  for (const auto& pair : node) {
    if (!pair.first.IsScalar()) {
      reader_->problem(pair.first.Mark(), path_, std::string("expected a key, found ") + kind_text(pair.first));
      continue;
    }
    const std::string& key = pair.first.Scalar();
    const auto [it, is_new] = values_.try_emplace(key, Value{pair.second, pair.first.Mark()});
    if (!is_new) {
      reader_->problem(pair.first.Mark(), full(key),
                       "'" + full(key) + "' is given twice, first in line " +
                           std::to_string(it->second.key_mark.line + 1) + "; keep one");
    }
  }
}

const YAML::Node* YamlSection::find(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second.node;
}

std::optional<std::string> YamlSection::scalar(const YAML::Node& node, const std::string& full_key) {
  if (!node.IsScalar()) {
    reader_->problem(node.Mark(), full_key, "'" + full_key + "': expected a single value, found " + kind_text(node));
    return {};
  }
  const std::string& raw = node.Scalar();
  std::string value;
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t open = raw.find("${", at);
    value += raw.substr(at, open == std::string::npos ? open : open - at);
    if (open == std::string::npos) break;
    const std::size_t close = raw.find('}', open);
    if (close == std::string::npos) {
      reader_->problem(node.Mark(), full_key, "'" + full_key + "': '${' without '}' in '" + raw + "'");
      return {};
    }
    const std::string name = raw.substr(open + 2, close - open - 2);
    const std::optional<std::string> found = reader_->environment(name);
    if (!found) {
      reader_->problem(node.Mark(), full_key,
                       "'" + full_key + "': the environment variable '" + name +
                           "' is not set; set it, or write the "
                           "value in place of ${" +
                           name + "}");
      return {};
    }
    value += *found;
    at = close + 1;
  }
  return value;
}

std::optional<std::string> YamlSection::text(const std::string& key) {
  const YAML::Node* node = find(key);
  return node == nullptr ? std::nullopt : scalar(*node, full(key));
}

std::optional<bool> YamlSection::boolean(const std::string& key) {
  const std::optional<std::string> value = text(key);
  if (!value) return {};
  if (*value == "true" || *value == "false") return *value == "true";
  report(key, "expected true or false, found '" + *value + "'");
  return {};
}

std::optional<std::int64_t> YamlSection::integer(const std::string& key, std::int64_t low, std::int64_t high) {
  const std::optional<std::string> value = text(key);
  if (!value) return {};
  const Result<std::int64_t> number = parse_integer(*value);
  if (number.ok() && *number >= low && *number <= high) return *number;
  report(key, "expected a whole number" + range_text(std::to_string(low), std::to_string(high)) + ", found '" + *value +
                  "'");
  return {};
}

std::optional<double> YamlSection::number(const std::string& key, double low, double high) {
  const std::optional<std::string> value = text(key);
  if (!value) return {};
  const Result<double> number = parse_number(*value);
  if (number.ok() && *number >= low && *number <= high) return *number;
  report(key, "expected a number" + range_text(plain(low), plain(high)) + ", found '" + *value + "'");
  return {};
}

std::optional<std::size_t> YamlSection::choice(const std::string& key, std::span<const std::string> words) {
  const std::optional<std::string> value = text(key);
  if (!value) return {};
  const auto it = std::find(words.begin(), words.end(), *value);
  if (it != words.end()) return static_cast<std::size_t>(it - words.begin());
  const std::string nearest = nearest_word(*value, words);
  report(key,
         "expected one of " + join(words) + ", found '" + *value + "'" +
             (similar_words(*value, nearest) ? "; did you mean '" + nearest + "'?" : ""),
         nearest);
  return {};
}

std::optional<std::filesystem::path> YamlSection::resolve(const YAML::Node& node, const std::string& full_key,
                                                          bool must_exist) {
  const std::optional<std::string> value = scalar(node, full_key);
  if (!value) return {};
  if (value->empty()) {
    reader_->problem(node.Mark(), full_key, "'" + full_key + "': expected a path, found an empty value");
    return {};
  }
  const std::filesystem::path resolved = (reader_->base / *value).lexically_normal();
  std::error_code error;
  if (must_exist && !std::filesystem::is_regular_file(resolved, error)) {
    const bool is_other = std::filesystem::exists(resolved, error);
    reader_->problem(node.Mark(), full_key,
                     "'" + full_key + "': " + resolved.string() + (is_other ? " is not a file" : " does not exist") +
                         "; relative paths start from the folder of this file");
    return {};
  }
  return resolved;
}

std::optional<std::filesystem::path> YamlSection::path(const std::string& key, bool must_exist) {
  const YAML::Node* node = find(key);
  return node == nullptr ? std::nullopt : resolve(*node, full(key), must_exist);
}

std::vector<std::filesystem::path> YamlSection::path_list(const std::string& key) {
  const YAML::Node* node = find(key);
  if (node == nullptr) return {};
  if (!node->IsSequence()) {
    report(key, std::string("expected a list of paths, found ") + kind_text(*node));
    return {};
  }
  std::vector<std::filesystem::path> paths;
  for (std::size_t i = 0; i < node->size(); ++i) {
    auto item = resolve((*node)[i], full(key) + "[" + std::to_string(i) + "]", /*must_exist=*/true);
    if (item) paths.push_back(std::move(*item));
  }
  return paths;
}

std::vector<double> YamlSection::numbers(const std::string& key) {
  const YAML::Node* node = find(key);
  if (node == nullptr) return {};
  std::vector<YAML::Node> items;
  if (node->IsSequence()) {
    for (std::size_t i = 0; i < node->size(); ++i) items.push_back((*node)[i]);
  } else {
    items.push_back(*node);
  }
  if (items.empty()) report(key, "expected one number a channel, found an empty list");
  std::vector<double> values;
  for (const YAML::Node& item : items) {
    const std::optional<std::string> value = scalar(item, full(key));
    if (!value) continue;
    const Result<double> number = parse_fraction(*value);
    if (number.ok()) {
      values.push_back(*number);
    } else {
      reader_->problem(item.Mark(), full(key), "'" + full(key) + "': " + number.status().message());
    }
  }
  return values.size() == items.size() ? values : std::vector<double>();
}

std::map<std::string, std::string> YamlSection::free_words(const std::string& key) {
  YamlSection inner = section(key);
  std::map<std::string, std::string> words;
  for (const auto& [name, value] : inner.values_) {
    if (auto word = inner.scalar(value.node, inner.full(name))) words.emplace(name, std::move(*word));
  }
  return words;
}

YamlSection YamlSection::section(const std::string& key) {
  const YAML::Node* node = find(key);
  return YamlSection(*reader_, node == nullptr ? YAML::Node(YAML::NodeType::Undefined) : *node, full(key));
}

std::vector<YamlSection> YamlSection::sections(const std::string& key) {
  const YAML::Node* node = find(key);
  if (node == nullptr || node->IsNull()) return {};
  if (!node->IsSequence()) {
    report(key, std::string("expected a list (lines that begin with '- '), found ") + kind_text(*node));
    return {};
  }
  std::vector<YamlSection> list;
  for (std::size_t i = 0; i < node->size(); ++i) {
    list.emplace_back(*reader_, (*node)[i], full(key) + "[" + std::to_string(i) + "]");
  }
  return list;
}

void YamlSection::require(const std::string& key, const std::string& what) {
  if (has(key)) return;
  reader_->problem(mark_, full(key), "'" + full(key) + "' is missing; add " + what);
}

void YamlSection::report(const std::string& key, const std::string& message, const std::string& nearest) {
  const auto it = values_.find(key);
  reader_->problem(it == values_.end() ? mark_ : it->second.node.Mark(), full(key), "'" + full(key) + "': " + message,
                   nearest);
}

void YamlSection::finish() {
  for (const auto& [key, value] : values_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string nearest = nearest_word(key, known_);
    reader_->problem(
        value.key_mark, full(key),
        "unknown key '" + key + "'" + (path_.empty() ? "" : " in '" + path_ + "'") + did_you_mean(key, nearest, known_),
        nearest);
  }
}

}  // namespace tenon::pipeline
