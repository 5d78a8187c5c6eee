#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "api/handles.h"
#include "core/tuner/code_store.h"

using tenon::CacheChoice;
using tenon::CacheMeasurement;
using tenon::Code;
using tenon::Hash128;
using tenon::Status;
using tenon::to_text;
using namespace tenon::api;
using nlohmann::json;

namespace {

Hash128 from_abi(const TnCacheKey& key) {
  Hash128 hash;
  for (int i = 0; i < 8; ++i) hash.high = hash.high << 8 | key.bytes[i];
  for (int i = 8; i < 16; ++i) hash.low = hash.low << 8 | key.bytes[i];
  return hash;
}

TnCacheKey to_abi(const Hash128& hash) {
  TnCacheKey key{};
  for (int i = 0; i < 8; ++i) {
    key.bytes[i] = static_cast<uint8_t>(hash.high >> (56 - 8 * i));
    key.bytes[8 + i] = static_cast<uint8_t>(hash.low >> (56 - 8 * i));
  }
  return key;
}

json choice_json(const CacheChoice& choice) {
  return {{"key", to_text(choice.key)},       {"layer", choice.layer},   {"op", choice.op},
          {"device", choice.device},          {"combo", choice.combo},   {"kernel", choice.kernel},
          {"tactic", to_text(choice.tactic)}, {"params", choice.params}, {"ms", choice.ms},
          {"pinned", choice.pinned}};
}

json measurement_json(const CacheMeasurement& measurement) {
  const char* const kinds[] = {"measured", "rejected", "quarantined"};
  return {{"key", to_text(measurement.key)},  {"kind", kinds[static_cast<int>(measurement.kind)]},
          {"combo", measurement.combo},       {"kernel", measurement.kernel},
          {"revision", measurement.revision}, {"tactic", to_text(measurement.tactic)},
          {"params", measurement.params},     {"ms", measurement.ms},
          {"launches", measurement.launches}, {"reason", measurement.reason}};
}

json graph_json(const tenon::CacheGraph& graph) {
  json regions = json::array(), layout = json::array(), streams = json::array(), rerank = json::array();
  for (const auto& entry : graph.layout) layout.push_back({{"value", entry.value}, {"format", entry.format}});
  for (const auto& entry : graph.streams) {
    streams.push_back({{"layer", entry.layer}, {"step", entry.step}, {"stream", entry.stream}});
  }
  for (const auto& entry : graph.rerank) {
    rerank.push_back({{"key", to_text(entry.key)},
                      {"layer", entry.layer},
                      {"tactic", to_text(entry.tactic)},
                      {"ms", entry.ms},
                      {"rival", to_text(entry.rival)},
                      {"rival_ms", entry.rival_ms}});
  }
  for (const auto& entry : graph.regions) {
    regions.push_back({{"rule", entry.rule},
                       {"layer", entry.layer},
                       {"taken", entry.taken},
                       {"ms", entry.ms},
                       {"rival_ms", entry.rival_ms}});
  }
  return {{"key", to_text(graph.key)}, {"device", graph.device}, {"regions", regions},
          {"layout", layout},          {"streams", streams},     {"rerank", rerank}};
}

tenon::Result<CacheChoice> parse_choice(const char* text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return Status(Code::kInvalid, fmt::format("choice_json is not a JSON object: {}", text));
  const auto field = [&](const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  CacheChoice choice;
  const auto key = tenon::parse_hash128(field("key"));
  if (!key) {
    return Status(Code::kInvalid,
                  fmt::format("a choice needs \"key\": 0x and 32 hex digits, found \"{}\"", field("key")));
  }
  const auto tactic = tenon::parse_hash64(field("tactic"));
  if (!tactic || *tactic == ~0ull) {
    return Status(Code::kInvalid,
                  fmt::format("a choice needs \"tactic\": 0x and up to 16 hex digits, found \"{}\"", field("tactic")));
  }
  choice.key = *key;
  choice.tactic = *tactic;
  choice.layer = field("layer");
  choice.op = field("op");
  choice.device = field("device");
  choice.combo = field("combo");
  choice.kernel = field("kernel");
  choice.params = field("params");
  if (object.contains("ms") && object["ms"].is_number()) choice.ms = object["ms"];
  if (object.contains("pinned") && object["pinned"].is_boolean()) choice.pinned = object["pinned"];
  return choice;
}

tenon::Result<std::string> signature(TnLibrary* library, const char* device, int32_t threads) {
  TENON_RETURN_IF_ERROR(need(library, "library"));
  TENON_ASSIGN(const auto target, library->state->device(device != nullptr ? device : "auto", threads));
  return target->info().signature;
}

}  // namespace

extern "C" {

TnStatus tn_cache_create(TnLibrary* library, const char* device, int32_t threads, const void* bytes, size_t size,
                         TnTimingCache** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_ASSIGN(const std::string text, signature(library, device, threads));
    if (size != 0) TENON_RETURN_IF_ERROR(need(bytes, "bytes"));
    TENON_ASSIGN(auto cache, tenon::TimingCache::parse(std::string_view(static_cast<const char*>(bytes), size), text,
                                                       library->state->logger));
    *out = new TnTimingCache{library->state, std::move(cache)};
    return {};
  });
}

TnStatus tn_cache_load(TnLibrary* library, const char* device, int32_t threads, const char* path, int32_t strict,
                       TnTimingCache** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_RETURN_IF_ERROR(need(path, "path"));
    TENON_ASSIGN(const std::string text, signature(library, device, threads));
    TENON_ASSIGN(auto cache, tenon::TimingCache::load(path, text, library->state->logger, strict != 0));
    *out = new TnTimingCache{library->state, std::move(cache)};
    return {};
  });
}

TnStatus tn_cache_save(const TnTimingCache* cache, const char* path) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(cache, "cache"));
    TENON_RETURN_IF_ERROR(need(path, "path"));
    return cache->library->report(cache->cache->save(path, cache->library->logger));
  });
}

void tn_cache_release(TnTimingCache* cache) { delete cache; }

TnStatus tn_cache_serialize(const TnTimingCache* cache, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(cache, "cache"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    *out = new TnText{cache->cache->serialize()};
    return {};
  });
}

TnCacheValue tn_cache_query(const TnTimingCache* cache, const TnCacheKey* key) {
  tenon::CacheValue value;
  if (cache != nullptr && key != nullptr) value = cache->cache->query(from_abi(*key));
  return {value.tactic, value.ms, 0};
}

size_t tn_cache_query_keys(const TnTimingCache* cache, TnCacheKey* out, size_t capacity) {
  if (cache == nullptr) return 0;
  const size_t count = cache->cache->query_keys(nullptr, 0);
  std::vector<Hash128> keys(count);
  const size_t found = cache->cache->query_keys(keys.data(), keys.size());
  for (size_t i = 0; out != nullptr && i < std::min({capacity, found, keys.size()}); ++i) out[i] = to_abi(keys[i]);
  return found;
}

int32_t tn_cache_update(TnTimingCache* cache, const TnCacheKey* key, const TnCacheValue* value) {
  if (cache == nullptr || key == nullptr || value == nullptr) return 0;
  return cache->cache->update(from_abi(*key), {value->tactic, value->ms}) ? 1 : 0;
}

int32_t tn_cache_combine(TnTimingCache* cache, const TnTimingCache* other, int32_t ignore_mismatch) {
  if (cache == nullptr || other == nullptr) return 0;
  return cache->cache->combine(*other->cache, ignore_mismatch != 0) ? 1 : 0;
}

void tn_cache_reset(TnTimingCache* cache) {
  if (cache != nullptr) cache->cache->reset();
}

TnStatus tn_cache_insert(TnTimingCache* cache, const char* text) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(cache, "cache"));
    TENON_RETURN_IF_ERROR(need(text, "choice_json"));
    TENON_ASSIGN(const CacheChoice choice, parse_choice(text));
    cache->cache->insert(choice);
    return {};
  });
}

int32_t tn_cache_pin(TnTimingCache* cache, const TnCacheKey* key, int32_t pinned) {
  return cache != nullptr && key != nullptr && cache->cache->pin(from_abi(*key), pinned != 0) ? 1 : 0;
}

int32_t tn_cache_erase(TnTimingCache* cache, const TnCacheKey* key) {
  return cache != nullptr && key != nullptr && cache->cache->erase(from_abi(*key)) ? 1 : 0;
}

TnStatus tn_cache_describe(const TnTimingCache* cache, const char* layer, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(cache, "cache"));
    TENON_RETURN_IF_ERROR(need(out, "json"));
    json choices = json::array(), measured = json::array(), graphs = json::array();
    const std::vector<CacheChoice> found =
        layer != nullptr ? cache->cache->choices_of_layer(layer) : cache->cache->choices();
    for (const CacheChoice& choice : found) choices.push_back(choice_json(choice));
    if (layer == nullptr) {
      for (const tenon::CacheGraph& graph : cache->cache->graphs()) graphs.push_back(graph_json(graph));
      for (const CacheMeasurement& entry : cache->cache->all_measurements())
        measured.push_back(measurement_json(entry));
    } else {
      for (const CacheChoice& choice : found) {
        for (const CacheMeasurement& entry : cache->cache->measurements(choice.key)) {
          measured.push_back(measurement_json(entry));
        }
      }
    }
    const tenon::CodeStore::Size code = cache->cache->code().size();
    *out = new TnText{json{{"device", cache->cache->device_signature()},
                           {"choices", choices},
                           {"measured", measured},
                           {"graphs", graphs},
                           {"code", {{"pieces", code.pieces}, {"bytes", code.bytes}}}}
                          .dump(2)};
    return {};
  });
}

}  // extern "C"
