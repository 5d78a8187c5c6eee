#include "core/builder/layout.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "core/builder/min_cut.h"

namespace tenon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const char kRow[] = "row";

/// The problem with the look-ups that the search needs.
class Search {
 public:
  explicit Search(const LayoutProblem& problem) : problem_(problem) {
    const std::size_t values = static_cast<std::size_t>(problem.num_values);
    producers_.assign(values, {-1, -1});
    readers_.resize(values);
    needs_row_.assign(values, false);
    site_nodes_.resize(problem.sites.size());
    for (int n = 0; n < static_cast<int>(problem.nodes.size()); ++n) {
      const LayoutProblem::Node& node = problem.nodes[static_cast<std::size_t>(n)];
      site_nodes_[static_cast<std::size_t>(node.site)].push_back(n);
      for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
        producers_[static_cast<std::size_t>(node.outputs[static_cast<std::size_t>(i)])] = {n, i};
      }
      for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
        const int value = node.inputs[static_cast<std::size_t>(i)];
        if (value >= 0) readers_[static_cast<std::size_t>(value)].push_back({n, i});
      }
    }
    for (const int value : problem.row_values) needs_row_[static_cast<std::size_t>(value)] = true;
  }

  double total(const std::vector<int>& options) const {
    double ms = 0;
    for (const LayoutProblem::Node& node : problem_.nodes) ms += option(node, options).ms;
    for (int value = 0; value < problem_.num_values; ++value) ms += value_ms(value, options);
    return ms;
  }

  /// Improves until neither one site, nor a pair of neighbours, nor any number of sites that change to the same formats
  /// can change for the better, as far as the last can be told (see expand).
  double improve(std::vector<int>* options) const {
    double best = improve_locally(options);
    const std::set<Formats> all = all_formats();
    for (bool changed = true; changed;) {
      changed = false;
      for (const Formats& formats : all) {
        std::vector<int> expanded = expand(formats, *options);
        if (expanded == *options) continue;
        const double ms = improve_locally(&expanded);
        if (!(ms < best)) continue;
        best = ms;
        *options = std::move(expanded);
        changed = true;
      }
    }
    return best;
  }

 private:
  struct Place {
    int node, port;
  };
  using Formats = std::pair<std::string, std::string>;  ///< of the first input that matters and the first output

  /// Until neither one site nor a pair of neighbours can change for the better.
  double improve_locally(std::vector<int>* options) const {
    double best = total(*options);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t site = 0; site < problem_.sites.size(); ++site) changed |= try_site(site, options);
      for (int value = 0; value < problem_.num_values; ++value) changed |= try_neighbours(value, options);
      const double now = total(*options);
      if (!(now < best)) break;
      best = now;
    }
    return total(*options);
  }

  static Formats formats_of(const LayoutProblem::Option& option) {
    Formats formats;
    for (const std::string& input : option.inputs) {
      if (formats.first.empty()) formats.first = input;
    }
    if (!option.outputs.empty()) formats.second = option.outputs[0];
    return formats;
  }

  std::set<Formats> all_formats() const {
    std::set<Formats> all;
    for (const auto& site : problem_.sites) {
      for (const LayoutProblem::Option& option : site) all.insert(formats_of(option));
    }
    return all;
  }

  /// The best choice in which each site keeps its option or takes its fastest with these formats: a minimum cut
  /// (Boykov, Veksler, Zabih 2001). Conversions that readers share are counted for each, so the result need not be
  /// better.
  std::vector<int> expand(const Formats& formats, const std::vector<int>& options) const {
    const std::size_t count = problem_.sites.size();
    std::vector<int> wanted = options;
    for (std::size_t site = 0; site < count; ++site) {
      double least = kInfinity;
      for (int i = 0; i < static_cast<int>(problem_.sites[site].size()); ++i) {
        const LayoutProblem::Option& option = problem_.sites[site][static_cast<std::size_t>(i)];
        if (formats_of(option) != formats || !(option.ms < least)) continue;
        least = option.ms;
        wanted[site] = i;
      }
    }
    MinCut cut(count);
    for (const LayoutProblem::Node& node : problem_.nodes) {
      cut.add_cost(static_cast<std::size_t>(node.site), finite(option(node, options).ms),
                   finite(option(node, wanted).ms));
    }
    for (int value = 0; value < problem_.num_values; ++value) {
      const Place producer = producers_[static_cast<std::size_t>(value)];
      const auto have = [&](const std::vector<int>& chosen) -> const std::string& {
        return producer.node < 0 ? row_
                                 : option(node(producer.node), chosen).outputs[static_cast<std::size_t>(producer.port)];
      };
      for (const Place& reader : readers_[static_cast<std::size_t>(value)]) {
        const auto ms = [&](const std::vector<int>& from, const std::vector<int>& to) {
          return convert_ms(value, have(from),
                            option(node(reader.node), to).inputs[static_cast<std::size_t>(reader.port)]);
        };
        const auto b = static_cast<std::size_t>(node(reader.node).site);
        const auto a = producer.node < 0 ? b : static_cast<std::size_t>(node(producer.node).site);
        if (a == b) {
          cut.add_cost(a, ms(options, options), ms(wanted, wanted));
        } else {
          cut.add_cost(a, b, ms(options, options), ms(options, wanted), ms(wanted, options), ms(wanted, wanted));
        }
      }
      if (needs_row_[static_cast<std::size_t>(value)] && producer.node >= 0) {
        cut.add_cost(static_cast<std::size_t>(node(producer.node).site), convert_ms(value, have(options), row_),
                     convert_ms(value, have(wanted), row_));
      }
    }
    const std::vector<bool> yes = cut.solve();
    for (std::size_t site = 0; site < count; ++site) {
      if (!yes[site]) wanted[site] = options[site];
    }
    return wanted;
  }

  static double finite(double ms) { return std::min(ms, 1e9); }

  double convert_ms(int value, const std::string& from, const std::string& to) const {
    return to.empty() || from == to ? 0 : finite(problem_.reformat_ms(value, from, to) + problem_.launch_ms);
  }

  const LayoutProblem::Option& option(const LayoutProblem::Node& node, const std::vector<int>& options) const {
    const std::size_t site = static_cast<std::size_t>(node.site);
    return problem_.sites[site][static_cast<std::size_t>(options[site])];
  }
  const LayoutProblem::Node& node(int n) const { return problem_.nodes[static_cast<std::size_t>(n)]; }

  /// Conversions that one value needs: each wanted format once.
  double value_ms(int value, const std::vector<int>& options) const {
    const std::size_t v = static_cast<std::size_t>(value);
    const Place producer = producers_[v];
    const std::string& have =
        producer.node < 0 ? row_
                          : option(node(producer.node), options).outputs[static_cast<std::size_t>(producer.port)];
    std::set<std::string> wanted;
    for (const Place& reader : readers_[v]) {
      const std::string& format = option(node(reader.node), options).inputs[static_cast<std::size_t>(reader.port)];
      if (!format.empty() && format != have) wanted.insert(format);
    }
    if (needs_row_[v] && have != kRow) wanted.insert(kRow);
    double ms = 0;
    for (const std::string& format : wanted) ms += problem_.reformat_ms(value, have, format) + problem_.launch_ms;
    return ms;
  }

  /// Time of everything that a change of these sites can touch.
  double local_ms(const std::vector<std::size_t>& sites, const std::vector<int>& options) const {
    double ms = 0;
    std::set<int> values;
    for (const std::size_t site : sites) {
      for (const int n : site_nodes_[site]) {
        ms += option(node(n), options).ms;
        for (const int value : node(n).inputs) {
          if (value >= 0) values.insert(value);
        }
        values.insert(node(n).outputs.begin(), node(n).outputs.end());
      }
    }
    for (const int value : values) ms += value_ms(value, options);
    return ms;
  }

  bool try_site(std::size_t site, std::vector<int>* options) const {
    const int before = (*options)[site];
    int best = before;
    double best_ms = local_ms({site}, *options);
    for (int i = 0; i < static_cast<int>(problem_.sites[site].size()); ++i) {
      (*options)[site] = i;
      const double ms = local_ms({site}, *options);
      if (ms < best_ms) {
        best_ms = ms;
        best = i;
      }
    }
    (*options)[site] = best;
    return best != before;
  }

  bool try_neighbours(int value, std::vector<int>* options) const {
    const Place producer = producers_[static_cast<std::size_t>(value)];
    if (producer.node < 0) return false;
    const std::size_t first = static_cast<std::size_t>(node(producer.node).site);
    bool changed = false;
    for (const Place& reader : readers_[static_cast<std::size_t>(value)]) {
      const std::size_t second = static_cast<std::size_t>(node(reader.node).site);
      if (second == first) continue;
      const int before_first = (*options)[first], before_second = (*options)[second];
      int best_first = before_first, best_second = before_second;
      double best_ms = local_ms({first, second}, *options);
      for (int i = 0; i < static_cast<int>(problem_.sites[first].size()); ++i) {
        for (int j = 0; j < static_cast<int>(problem_.sites[second].size()); ++j) {
          (*options)[first] = i;
          (*options)[second] = j;
          const double ms = local_ms({first, second}, *options);
          if (ms < best_ms) {
            best_ms = ms;
            best_first = i;
            best_second = j;
          }
        }
      }
      (*options)[first] = best_first;
      (*options)[second] = best_second;
      changed |= best_first != before_first || best_second != before_second;
    }
    return changed;
  }

  const LayoutProblem& problem_;
  const std::string row_ = kRow;
  std::vector<Place> producers_;
  std::vector<std::vector<Place>> readers_;
  std::vector<bool> needs_row_;
  std::vector<std::vector<int>> site_nodes_;
};

/// The fastest option of each site, among those that write `format` where there is one ("" : any).
std::vector<int> start_with(const LayoutProblem& problem, const std::string& format) {
  std::vector<int> options;
  for (const std::vector<LayoutProblem::Option>& site : problem.sites) {
    int best = -1;
    bool best_fits = false;
    for (int i = 0; i < static_cast<int>(site.size()); ++i) {
      const LayoutProblem::Option& option = site[static_cast<std::size_t>(i)];
      const bool fits = std::find(option.outputs.begin(), option.outputs.end(), format) != option.outputs.end();
      const bool better = best < 0 || (fits && !best_fits) ||
                          (fits == best_fits && option.ms < site[static_cast<std::size_t>(best)].ms);
      if (better) {
        best = i;
        best_fits = fits;
      }
    }
    options.push_back(best);
  }
  return options;
}

}  // namespace

double layout_ms(const LayoutProblem& problem, const std::vector<int>& options) {
  return Search(problem).total(options);
}

Result<LayoutSolution> solve_layout(const LayoutProblem& problem) {
  std::set<std::string> formats = {"", kRow};
  for (const auto& site : problem.sites) {
    for (const LayoutProblem::Option& option : site) formats.insert(option.outputs.begin(), option.outputs.end());
  }
  const Search search(problem);
  LayoutSolution best;
  best.ms = kInfinity;
  for (const std::string& format : formats) {
    std::vector<int> options = start_with(problem, format);
    const double ms = search.improve(&options);
    if (ms < best.ms) best = {std::move(options), ms};
  }
  if (best.ms == kInfinity) {
    return Status(Code::kNotFound,
                  "no choice of formats connects all layers: a needed conversion has no kernel. Load a plugin with "
                  "kernels of tenon.reformat/1 for the formats in use (tenon explain shows them)");
  }
  return best;
}

}  // namespace tenon
