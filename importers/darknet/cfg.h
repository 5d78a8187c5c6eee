// Darknet cfg files: sections of `key=value` lines, read with Darknet's own rules and with the line of everything kept.
//
//   Every space, tab and line end is removed. Lines that then begin with # or ; are comments. `[name]` begins a
//   section, the first of which is [net]. Of a key that occurs twice the first counts. Numbers end at a #. A line
//   without `=`, or with nothing behind it, has no effect. A byte order mark and CRLF are accepted.
//
// Thread rule: plain values; call from any thread.
#ifndef TENON_IMPORTERS_DARKNET_CFG_H_
#define TENON_IMPORTERS_DARKNET_CFG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::darknet {

using Warn = std::function<void(const std::string& message)>;

struct Entry {
  std::string key;
  std::string value;  // without white space, never empty
  int line = 0;
};

// One section. The readers below fail with Invalid; the message begins with place() of the line at fault.
struct Section {
  std::string type;     // "convolutional"; other spellings ([conv], [network]...) are turned into the long one
  std::string written;  // as in the file, without brackets
  std::string file;     // for messages
  int line = 0;
  int index = -1;  // number K of "layerK"; -1: [net]
  std::vector<Entry> entries;

  const Entry* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // "x.cfg:12: [convolutional] (layer 3): "
  std::string place(int at_line) const;
  [[noreturn]] void fail(const std::string& message) const;
  // At the line of `key`, or of the section if the key is absent.
  [[noreturn]] void fail_at(std::string_view key, const std::string& message) const;

  // The value of `key` in [least, most], or `fallback` unchecked if the key is absent.
  int64_t integer(std::string_view key, int64_t fallback, int64_t least, int64_t most) const;
  // A finite number.
  double number(std::string_view key, double fallback) const;
  std::string word(std::string_view key, const std::string& fallback) const;
  // Comma-separated; empty if the key is absent.
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  // Fails if the key has another value than `neutral`, which is also its default in Darknet.
  void must_be(std::string_view key, int64_t neutral) const;
};

struct Cfg {
  Section net;
  std::vector<Section> layers;
};

// `file` is the name for messages. Fails with Invalid, naming file and line, for what Darknet cannot read either: text
// before the first section, a first section that is not [net], a header without its bracket, no section at all.
Cfg parse_cfg(std::string_view text, const std::string& file, const Warn& warn);

// Warns of every key that Darknet does not know in this kind of section. Silent for kinds that are not Darknet's own.
void warn_of_unknown_keys(const Section& section, const Warn& warn);

}  // namespace tenon::darknet

#endif  // TENON_IMPORTERS_DARKNET_CFG_H_
