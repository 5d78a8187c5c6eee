#include "core/tuner/timing_cache.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/tuner/cache_line.h"
#include "core/tuner/timing_cache_impl.h"

namespace tenon {
namespace {

CacheChoice with_valid_texts(CacheChoice choice) {
  for (std::string* text : {&choice.layer, &choice.op, &choice.device, &choice.combo, &choice.kernel, &choice.params}) {
    *text = valid_utf8(*text);
  }
  return choice;
}

CacheMeasurement with_valid_texts(CacheMeasurement measurement) {
  for (std::string* text :
       {&measurement.combo, &measurement.kernel, &measurement.build, &measurement.params, &measurement.reason}) {
    *text = valid_utf8(*text);
  }
  return measurement;
}

CacheGraph with_valid_texts(CacheGraph graph) {
  graph.device = valid_utf8(graph.device);
  for (CacheGraph::Format& entry : graph.layout) {
    entry = {valid_utf8(entry.value), valid_utf8(entry.format)};
  }
  for (CacheGraph::Region& entry : graph.regions) {
    entry.rule = valid_utf8(entry.rule);
    entry.layer = valid_utf8(entry.layer);
  }
  for (CacheGraph::Rerank& entry : graph.rerank) entry.layer = valid_utf8(entry.layer);
  return graph;
}

/// The double with the float's shortest decimal text, so that the file shows 0.011264 and not 0.011264000087976456.
double widen(float value) {
  char buffer[64];
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, value);
  double result = value;
  std::from_chars(buffer, written.ptr, result);
  return result;
}

std::vector<CacheMeasurement> measurements_of(const CacheEntries& entries, Hash128 key) {
  std::vector<CacheMeasurement> found;
  for (auto it = entries.measurements.lower_bound({key, "", "", 0});
       it != entries.measurements.end() && it->first.key == key; ++it) {
    found.push_back(it->second.entry);
  }
  return found;
}

}  // namespace

MeasurementId id_of(const CacheMeasurement& measurement) {
  return {measurement.key, measurement.kernel, measurement.combo, measurement.tactic};
}

void CacheEntries::add_other(const std::string& line) {
  if (known_others.insert(line).second) others.push_back(line);
}

std::string CacheEntries::text() const {
  std::string result = header_line() + "\n";
  for (const auto& [key, slot] : choices) result += cache_line(slot.entry) + "\n";
  for (const auto& [id, slot] : measurements) result += cache_line(slot.entry) + "\n";
  for (const auto& [key, slot] : graphs) result += cache_line(slot.entry) + "\n";
  for (const std::string& line : others) result += line + "\n";
  return result;
}

void TimingCache::Impl::put(const CacheChoice& choice) {
  erased_choices.erase(choice.key);
  entries.choices[choice.key] = {with_valid_texts(choice), ++clock};
}

void TimingCache::Impl::put(const CacheMeasurement& measurement) {
  CacheMeasurement valid = with_valid_texts(measurement);
  const MeasurementId id = id_of(valid);
  erased_measurements.erase(id);
  CacheSlot<CacheMeasurement>& slot = entries.measurements[id];
  const bool lifts = slot.entry.kind == CacheMeasurement::Kind::kQuarantined || slot.lifts_quarantine;
  slot = {std::move(valid), ++clock, lifts};
}

void TimingCache::Impl::put(const CacheGraph& graph) {
  CacheGraph valid = with_valid_texts(graph);
  if (cache_line(valid).size() > kMaxFlowLine) return;
  erased_graphs.erase(graph.key);
  entries.graphs[graph.key] = {std::move(valid), ++clock};
}

void TimingCache::Impl::erase_choice(Hash128 key) {
  entries.choices.erase(key);
  erased_choices[key] = ++clock;
}

CacheEntries TimingCache::Impl::merged_with(const CacheEntries& disk, const std::filesystem::path& path) const {
  const auto yields = [&](std::uint64_t changed) { return path == origin && changed <= origin_clock; };
  CacheEntries merged = entries;
  const auto merge = [&](auto* into, const auto& from, const auto& erased) {
    for (const auto& [key, theirs] : from) {
      if (erased.count(key) != 0) continue;
      const auto [own, added] = into->try_emplace(key, theirs);
      if (!added && yields(own->second.changed)) own->second = theirs;
    }
  };
  merge(&merged.choices, disk.choices, erased_choices);
  merge(&merged.graphs, disk.graphs, erased_graphs);
  for (const auto& [id, theirs] : disk.measurements) {
    if (erased_measurements.count(id) != 0) continue;
    const auto [own, added] = merged.measurements.try_emplace(id, theirs);
    if (added) continue;
    const bool crashed_elsewhere =
        theirs.entry.kind == CacheMeasurement::Kind::kQuarantined && !own->second.lifts_quarantine;
    if (yields(own->second.changed) || crashed_elsewhere) own->second = theirs;
  }
  for (const std::string& line : disk.others) {
    if (erased_others.count(line) == 0) merged.add_other(line);
  }
  return merged;
}

void TimingCache::Impl::saved_to(const std::filesystem::path& path, std::uint64_t moment) {
  if (origin.empty()) origin = path;
  if (origin != path) return;
  origin_clock = std::max(origin_clock, moment);
  const auto is_done = [&](const auto& erased) { return erased.second <= moment; };
  std::erase_if(erased_choices, is_done);
  std::erase_if(erased_measurements, is_done);
  std::erase_if(erased_graphs, is_done);
  std::erase_if(erased_others, is_done);
}

TimingCache::TimingCache(std::string device_signature) : impl_(std::make_shared<Impl>()) {
  impl_->device = valid_utf8(device_signature);
}

Result<std::shared_ptr<TimingCache>> TimingCache::parse(std::string_view bytes, std::string device_signature,
                                                        Logger& logger, bool strict,
                                                        std::vector<std::string>* damaged) {
  TENON_ASSIGN(CacheEntries entries, parse_cache_text(bytes, "timing cache", logger, strict, damaged));
  auto cache = std::make_shared<TimingCache>(std::move(device_signature));
  cache->impl_->entries = std::move(entries);
  return cache;
}

std::string TimingCache::serialize() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->entries.text();
}

CacheValue TimingCache::query(Hash128 key) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->entries.choices.find(key);
  if (found == impl_->entries.choices.end()) return {};
  return {found->second.entry.tactic, static_cast<float>(found->second.entry.ms)};
}

std::size_t TimingCache::query_keys(Hash128* out, std::size_t capacity) const {
  const std::lock_guard lock(impl_->mutex);
  std::size_t copied = 0;
  for (const auto& [key, slot] : impl_->entries.choices) {
    if (copied == capacity) break;
    out[copied++] = key;
  }
  return impl_->entries.choices.size();
}

bool TimingCache::update(Hash128 key, CacheValue value) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->entries.choices.find(key);
  if (found == impl_->entries.choices.end()) return false;
  if (std::isnan(value.ms)) {
    impl_->erase_choice(key);
    return true;
  }
  if (!value.valid()) return false;
  CacheChoice choice = found->second.entry;
  choice.ms = widen(value.ms);
  if (choice.tactic != value.tactic) {
    // Several combos may offer the tactic: one that passed before one that did not, then the combo of the choice so
    // far, then the fastest.
    const auto rank = [&](const CacheMeasurement& m) {
      return std::make_tuple(m.kind != CacheMeasurement::Kind::kMeasured, m.combo != choice.combo, m.ms);
    };
    std::optional<CacheMeasurement> known;
    for (const CacheMeasurement& measurement : measurements_of(impl_->entries, key)) {
      if (measurement.tactic != value.tactic) continue;
      if (!known || rank(measurement) < rank(*known)) known = measurement;
    }
    choice.tactic = value.tactic;
    choice.kernel = known ? known->kernel : "";
    choice.combo = known ? known->combo : "";
    choice.params = known ? known->params : "";
  }
  impl_->put(choice);
  return true;
}

bool TimingCache::combine(const TimingCache& other, bool ignore_mismatch) {
  if (!ignore_mismatch && other.foreign_entries(device_signature()) != 0) return false;
  CacheEntries theirs;
  {
    const std::lock_guard lock(other.impl_->mutex);
    theirs = other.impl_->entries;
  }
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [key, slot] : theirs.choices) {
    if (impl_->entries.choices.count(key) == 0) impl_->put(slot.entry);
  }
  for (const auto& [id, slot] : theirs.measurements) {
    if (impl_->entries.measurements.count(id) == 0) impl_->put(slot.entry);
  }
  for (const auto& [key, slot] : theirs.graphs) {
    if (impl_->entries.graphs.count(key) == 0) impl_->put(slot.entry);
  }
  for (const std::string& line : theirs.others) {
    impl_->erased_others.erase(line);
    impl_->entries.add_other(line);
  }
  impl_->code.combine(other.impl_->code);
  return true;
}

std::size_t TimingCache::foreign_entries(std::string_view device_signature) const {
  if (device_signature.empty()) return 0;
  const std::lock_guard lock(impl_->mutex);
  const auto is_foreign = [&](const auto& slot) {
    const std::string& device = slot.second.entry.device;
    return !device.empty() && device != device_signature;
  };
  const auto foreign = [&](const auto& map) { return std::count_if(map.begin(), map.end(), is_foreign); };
  return static_cast<std::size_t>(foreign(impl_->entries.choices) + foreign(impl_->entries.graphs));
}

void TimingCache::reset() {
  const std::lock_guard lock(impl_->mutex);
  const std::uint64_t now = ++impl_->clock;
  for (const auto& [key, slot] : impl_->entries.choices) impl_->erased_choices[key] = now;
  for (const auto& [id, slot] : impl_->entries.measurements) impl_->erased_measurements[id] = now;
  for (const auto& [key, slot] : impl_->entries.graphs) impl_->erased_graphs[key] = now;
  for (const std::string& line : impl_->entries.others) impl_->erased_others[line] = now;
  impl_->entries = {};
}

void TimingCache::insert(const CacheChoice& choice) {
  const std::lock_guard lock(impl_->mutex);
  impl_->put(choice);
}

bool TimingCache::pin(Hash128 key, bool pinned) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->entries.choices.find(key);
  if (found == impl_->entries.choices.end()) return false;
  CacheChoice choice = found->second.entry;
  choice.pinned = pinned;
  impl_->put(choice);
  return true;
}

bool TimingCache::erase(Hash128 key) {
  const std::lock_guard lock(impl_->mutex);
  const bool graph = impl_->entries.graphs.erase(key) != 0;
  if (graph) impl_->erased_graphs[key] = ++impl_->clock;
  const bool choice = impl_->entries.choices.count(key) != 0;
  if (choice) impl_->erase_choice(key);
  return graph || choice;
}

std::optional<CacheChoice> TimingCache::choice(Hash128 key) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->entries.choices.find(key);
  if (found == impl_->entries.choices.end()) return std::nullopt;
  return found->second.entry;
}

std::vector<CacheChoice> TimingCache::choices_of_layer(std::string_view layer) const {
  std::vector<CacheChoice> found;
  for (CacheChoice& choice : choices()) {
    const std::string_view name = choice.layer;
    if (name.substr(0, layer.size()) != layer) continue;
    if (name.size() == layer.size() || name[layer.size()] == '+' || name[layer.size()] == '.') {
      found.push_back(std::move(choice));
    }
  }
  return found;
}

std::vector<CacheChoice> TimingCache::choices() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<CacheChoice> all;
  for (const auto& [key, slot] : impl_->entries.choices) all.push_back(slot.entry);
  return all;
}

std::vector<CacheMeasurement> TimingCache::measurements(Hash128 key) const {
  const std::lock_guard lock(impl_->mutex);
  return measurements_of(impl_->entries, key);
}

std::vector<CacheMeasurement> TimingCache::all_measurements() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<CacheMeasurement> all;
  for (const auto& [id, slot] : impl_->entries.measurements) all.push_back(slot.entry);
  return all;
}

std::vector<CacheMeasurement> TimingCache::quarantines() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<CacheMeasurement> found;
  for (const auto& [id, slot] : impl_->entries.measurements) {
    if (slot.entry.kind == CacheMeasurement::Kind::kQuarantined) found.push_back(slot.entry);
  }
  return found;
}

void TimingCache::record(const CacheMeasurement& measurement) {
  const std::lock_guard lock(impl_->mutex);
  impl_->put(measurement);
}

std::optional<CacheGraph> TimingCache::graph(Hash128 key) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->entries.graphs.find(key);
  if (found == impl_->entries.graphs.end()) return std::nullopt;
  return found->second.entry;
}

std::vector<CacheGraph> TimingCache::graphs() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<CacheGraph> all;
  for (const auto& [key, slot] : impl_->entries.graphs) all.push_back(slot.entry);
  return all;
}

void TimingCache::record(const CacheGraph& graph) {
  const std::lock_guard lock(impl_->mutex);
  impl_->put(graph);
}

std::string TimingCache::device_signature() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->device;
}

CodeStore& TimingCache::code() const { return impl_->code; }

}  // namespace tenon
