// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tools/labs/ns3/metric.hpp"
#include "tools/labs/ns3/scenario_keys.hpp"

namespace onehop::sim {

namespace {

constexpr int seeds_max = 1000;
constexpr std::size_t points_max = 10'000;

/// Entry is a row or a column: its name and its table.
struct Entry {
  std::string name;
  const toml::table* table = nullptr;
};

Result<std::vector<std::string>> texts(const toml::table& table, const std::string& key,
                                       const std::string& where) {
  std::vector<std::string> out;
  const toml::node* const node = table.get(key);
  if (node == nullptr) return out;
  const toml::array* const array = node->as_array();
  if (array == nullptr) return refuse(where, key, "it must be a list of texts");
  for (const toml::node& item : *array) {
    const auto value = item.value_exact<std::string>();
    if (!value) return refuse(where, key, "it must be a list of texts");
    out.push_back(*value);
  }
  return out;
}

Result<void> known_keys(const toml::table& table, const std::string& where,
                        const std::set<std::string_view>& known) {
  for (const auto& [key, node] : table)
    if (!known.contains(key.str()))
      return refuse(where, std::string{key.str()}, "no such key here");
  return success();
}

Result<std::vector<const toml::table*>> tables(const toml::table& from, const std::string& key,
                                               const std::string& where) {
  std::vector<const toml::table*> out;
  const toml::node* const node = from.get(key);
  if (node == nullptr) return out;
  const toml::array* const array = node->as_array();
  if (array == nullptr) return refuse(where, key, "it must be a list of tables");
  for (const toml::node& item : *array) {
    if (item.as_table() == nullptr) return refuse(where, key, "it must be a list of tables");
    out.push_back(item.as_table());
  }
  return out;
}

/// text_at: empty where there is none.
Result<std::string> text_at(const toml::table& table, const std::string& key,
                            const std::string& where) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return std::string{};
  const auto value = node->value_exact<std::string>();
  if (!value) return refuse(where, key, "it must be a text");
  return *value;
}

Result<std::optional<double>> number_at(const toml::table& table, const std::string& key,
                                        const std::string& where) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return std::optional<double>{};
  const auto value = node->value<double>();
  if (!node->is_number() || !value || !std::isfinite(*value))
    return refuse(where, key, "it must be a number");
  return value;
}

/// What is no table would be passed over without a word.
Result<void> only_tables(const toml::table& from, const std::string& where) {
  for (const char* const key : {"link", "run", "flow", "short"})
    if (const toml::node* const node = from.get(key); node != nullptr && !node->is_table())
      return refuse(where, key, "it must be a table");
  return success();
}

Result<std::vector<Entry>> entries(const toml::table& root, const std::string& key,
                                   const std::string& where, const std::vector<std::string>& kept) {
  ONEHOP_TRY(list, tables(root, key, where));
  std::vector<Entry> out;
  std::set<std::string> names;
  for (const toml::table* table : list) {
    ONEHOP_TRYV(known_keys(*table, where + " " + key, {"name", "link", "run", "flow", "flows"}));
    ONEHOP_TRYV(only_tables(*table, where + " " + key));
    const auto name = (*table)["name"].value_exact<std::string>();
    if (!name || !names.insert(*name).second)
      return refuse(where, key, "each needs a name of its own");
    if (kept.empty() || std::find(kept.begin(), kept.end(), *name) != kept.end())
      out.push_back({*name, table});
  }
  for (const std::string& name : kept)
    if (!names.contains(name))
      return refuse(where, key,
                    fmt::format("there is no '{}', which [short] or --row names", name));
  if (out.empty()) return refuse(where, key, "there are none");
  return out;
}

/// Names: the rows and columns of the whole file.
struct Names {
  std::set<std::string> rows, columns;
};
Result<Names> names_of(const toml::table& root, const std::string& where) {
  Names names;
  for (const auto& [key, out] :
       {std::pair{"rows", &names.rows}, std::pair{"columns", &names.columns}}) {
    ONEHOP_TRY(all, entries(root, key, where, {}));
    for (const Entry& entry : all) out->insert(entry.name);
  }
  return names;
}

class Reader {
 public:
  Reader(const toml::table& root, std::string where, bool is_short)
      : root_{root}, where_{std::move(where)}, is_short_{is_short} {}

  [[nodiscard]] Result<RunSpec> point(const Entry& row, const Entry& column) const {
    RunSpec run;
    const std::string at = fmt::format("{}, row '{}', column '{}'", where_, row.name, column.name);
    for (const toml::table* table : {&root_, column.table, row.table}) {
      if (const toml::table* const link = (*table)["link"].as_table()) {
        ONEHOP_TRYV(read_link(*link, at, run.link));
      }
      if (const toml::table* const given = (*table)["run"].as_table()) {
        ONEHOP_TRYV(read_run(*given, at, run));
      }
    }
    if (const toml::table* const given = root_["short"]["run"].as_table();
        is_short_ && given != nullptr) {
      ONEHOP_TRYV(read_run(*given, at, run));
    }
    ONEHOP_TRY(list, flow_tables(row, column));
    for (const toml::table* table : list) {
      FlowTable flow;
      flow.flow.name = row.name;
      for (const toml::table* from : {&root_, column.table, row.table}) {
        if (const toml::table* const given = (*from)["flow"].as_table()) {
          ONEHOP_TRYV(read_flow(*given, at, flow));
        }
      }
      if (table != nullptr) {
        ONEHOP_TRYV(read_flow(*table, at, flow));
      }
      add(flow, run);
    }
    ONEHOP_TRYV(check_point(run, at));
    return run;
  }

 private:
  /// Null stands for one flow that the [flow] tables say all of.
  [[nodiscard]] Result<std::vector<const toml::table*>> flow_tables(const Entry& row,
                                                                    const Entry& column) const {
    for (const toml::table* table : {row.table, column.table, &root_}) {
      ONEHOP_TRY(list, tables(*table, "flows", where_));
      if (!list.empty()) return list;
    }
    return std::vector<const toml::table*>{nullptr};
  }
  static void add(const FlowTable& table, RunSpec& run) {
    const std::uint32_t copies = table.is_each_pair ? run.link.pairs : 1;
    for (std::uint32_t i = 0; i < copies; ++i) {
      FlowSpec flow = table.flow;
      if (table.is_each_pair) flow.pair = i;
      flow.start_s += i * table.stagger_s;
      if (table.rate_total_mbps > 0) flow.rate_mbps = table.rate_total_mbps / copies;
      run.flows.push_back(flow);
    }
  }

  const toml::table& root_;
  const std::string where_;
  const bool is_short_;
};

Result<std::vector<PaperValue>> read_paper(const toml::table& root, const std::string& where) {
  std::vector<PaperValue> out;
  ONEHOP_TRY(list, tables(root, "paper", where));
  for (const toml::table* table : list) {
    ONEHOP_TRYV(known_keys(*table, where + " paper", {"metric", "row", "column", "value"}));
    PaperValue value;
    for (const auto& [key, field] : {std::pair{"metric", &value.metric},
                                     {"row", &value.row},
                                     {"column", &value.column},
                                     {"value", &value.value}}) {
      const auto text = (*table)[key].value<std::string>();
      if (!text) return refuse(where + " paper", key, "it must be a text");
      *field = *text;
    }
    out.push_back(value);
  }
  return out;
}

Result<std::vector<Bound>> read_bounds(const toml::table& root, const std::string& where) {
  std::vector<Bound> out;
  ONEHOP_TRY(list, tables(root, "bounds", where));
  for (const toml::table* table : list) {
    ONEHOP_TRYV(known_keys(
        *table, where + " bounds",
        {"metric", "row", "columns", "at_least", "at_most", "of_row", "of_column", "replaced"}));
    Bound bound;
    for (const auto& [key, field] : {std::pair{"metric", &bound.metric},
                                     {"row", &bound.row},
                                     {"of_row", &bound.of_row},
                                     {"of_column", &bound.of_column},
                                     {"replaced", &bound.replaced}}) {
      ONEHOP_TRY(text, text_at(*table, key, where + " bounds"));
      *field = std::move(text);
    }
    ONEHOP_TRY(at_least, number_at(*table, "at_least", where + " bounds"));
    ONEHOP_TRY(at_most, number_at(*table, "at_most", where + " bounds"));
    bound.at_least = at_least;
    bound.at_most = at_most;
    ONEHOP_TRY(columns, texts(*table, "columns", where));
    bound.columns = columns;
    if (!is_metric(bound.metric) || bound.row.empty() ||
        bound.at_least.has_value() == bound.at_most.has_value())
      return refuse(where, "bounds", "each needs a known metric, a row, and at_least or at_most");
    out.push_back(bound);
  }
  return out;
}

/// check_names: what names a row or a column that is not there would never be judged, and what is
/// compared with itself cannot fail.
Result<void> check_names(const Names& names, const std::vector<PaperValue>& paper,
                         const std::vector<Bound>& bounds, const std::string& where) {
  const auto check = [&](const std::set<std::string>& known, const std::string& name,
                         const char* what, bool may_be_empty = false) -> Result<void> {
    if (known.contains(name) || (may_be_empty && name.empty())) return success();
    return refuse(where, what, fmt::format("it names '{}', which is not there", name));
  };
  for (const PaperValue& value : paper) {
    ONEHOP_TRYV(check(names.rows, value.row, "paper"));
    ONEHOP_TRYV(check(names.columns, value.column, "paper"));
  }
  for (const Bound& bound : bounds) {
    ONEHOP_TRYV(check(names.rows, bound.row, "bounds"));
    ONEHOP_TRYV(check(names.rows, bound.of_row, "bounds", true));
    ONEHOP_TRYV(check(names.columns, bound.of_column, "bounds", true));
    const bool is_own_row = bound.of_row.empty() || bound.of_row == bound.row;
    if (bound.is_relative() && is_own_row && bound.of_column.empty())
      return refuse(where, "bounds", fmt::format("'{}' is compared with itself", bound.row));
    for (const std::string& column : bound.columns) {
      ONEHOP_TRYV(check(names.columns, column, "bounds"));
    }
    const bool is_in_all = bound.columns.empty() && !bound.of_column.empty();
    for (const std::string& column : is_in_all ? std::vector{bound.of_column} : bound.columns)
      if (is_own_row && bound.of_column == column)
        return refuse(where, "bounds",
                      fmt::format("'{}', column '{}' is compared with itself", bound.row, column));
  }
  return success();
}

std::vector<std::string> rows_with_references(const std::vector<std::string>& rows,
                                              const std::vector<Bound>& bounds) {
  std::vector<std::string> out = rows;
  for (const Bound& bound : bounds)
    if (!bound.of_row.empty() && std::find(rows.begin(), rows.end(), bound.row) != rows.end())
      out.push_back(bound.of_row);
  return out;
}

std::vector<std::string> bounded_rows(const std::vector<Bound>& bounds) {
  std::vector<std::string> rows;
  for (const Bound& bound : bounds) rows.push_back(bound.row);
  return rows_with_references(rows, bounds);
}

/// Empty: one bound is on all.
std::vector<std::string> bounded_columns(const std::vector<Bound>& bounds) {
  std::vector<std::string> out;
  for (const Bound& bound : bounds) {
    if (bound.columns.empty()) return {};
    out.insert(out.end(), bound.columns.begin(), bound.columns.end());
    if (!bound.of_column.empty()) out.push_back(bound.of_column);
  }
  return out;
}

Result<void> read_head(const toml::table& root, const std::string& where,
                       const ScenarioOptions& options, Scenario& out) {
  for (const auto& [key, field] : {std::pair{"title", &out.title},
                                   {"source", &out.source},
                                   {"note", &out.note},
                                   {"x_label", &out.x_label}}) {
    ONEHOP_TRY(text, text_at(root, key, where));
    *field = std::move(text);
  }
  if (out.title.empty()) return refuse(where, "title", "it is missing");
  ONEHOP_TRY(differs, texts(root, "differs", where));
  out.differs = differs;
  ONEHOP_TRY(metrics, texts(root, "metrics", where));
  out.metrics = metrics;
  if (metrics.empty()) return refuse(where, "metrics", "there are none");
  for (const std::string& metric : metrics)
    if (!is_metric(metric))
      return refuse(where, "metrics",
                    fmt::format("'{}' is not known; known: {}", metric, metric_words()));
  ONEHOP_TRY(seeds_given, number_at(root, "seeds", where));
  const double seeds = seeds_given.value_or(1);
  if (seeds < 1 || seeds > seeds_max || seeds != std::floor(seeds))
    return refuse(where, "seeds", fmt::format("it must be a whole number from 1 to {}", seeds_max));
  out.seeds = options.is_short ? 1 : static_cast<std::uint64_t>(seeds);
  if (options.seeds) out.seeds = *options.seeds;
  if (options.seed) out.seed_first = *options.seed;
  return success();
}

}  // namespace

Result<Scenario> parse_scenario(const std::string& text, const std::string& id,
                                const ScenarioOptions& options) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return refuse(id, "the file",
                  fmt::format("line {}: {}", error.source().begin.line, error.description()));
  }
  ONEHOP_TRYV(
      known_keys(root, id,
                 {"title", "source", "note", "differs", "x_label", "metrics", "seeds", "link",
                  "run", "flow", "flows", "rows", "columns", "paper", "bounds", "short"}));
  Scenario out;
  out.id = id;
  out.is_short = options.is_short;
  out.is_bounded = options.is_bounded;
  ONEHOP_TRYV(only_tables(root, id));
  ONEHOP_TRYV(read_head(root, id, options, out));
  std::vector<std::string> rows_kept, columns_kept;
  if (const toml::table* const given = root["short"].as_table(); given != nullptr) {
    ONEHOP_TRYV(known_keys(*given, id + " short", {"rows", "columns", "run"}));
    ONEHOP_TRY(rows, texts(*given, "rows", id));
    ONEHOP_TRY(columns, texts(*given, "columns", id));
    ONEHOP_TRYV(entries(root, "rows", id,
                        rows));  // a name that does not exist is told of in a whole run, too
    ONEHOP_TRYV(entries(root, "columns", id, columns));
    if (options.is_short) rows_kept = rows, columns_kept = columns;
  }
  ONEHOP_TRY(paper, read_paper(root, id));
  ONEHOP_TRY(bounds, read_bounds(root, id));
  ONEHOP_TRY(names, names_of(root, id));
  ONEHOP_TRYV(check_names(names, paper, bounds, id));
  if (options.is_bounded) {
    if (bounds.empty()) return refuse(id, "bounds", "there are none");
    rows_kept = bounded_rows(bounds);
    columns_kept = bounded_columns(bounds);
  }
  if (!options.rows.empty()) rows_kept = rows_with_references(options.rows, bounds);
  ONEHOP_TRY(rows, entries(root, "rows", id, rows_kept));
  ONEHOP_TRY(columns, entries(root, "columns", id, columns_kept));
  if (rows.size() * columns.size() > points_max)
    return refuse(id, "rows", "more points than anybody waits for");
  const Reader reader{root, id, options.is_short};
  for (const Entry& column : columns) out.columns.push_back(column.name);
  for (const Entry& row : rows) {
    out.rows.push_back(row.name);
    out.points.emplace_back();
    for (const Entry& column : columns) {
      ONEHOP_TRY(point, reader.point(row, column));
      out.points.back().push_back(point);
    }
  }
  out.paper = paper;
  out.bounds = bounds;
  return out;
}

Result<Scenario> load_scenario(const std::string& path, const ScenarioOptions& options) {
  std::ifstream file{path};
  if (!file)
    return errno_error(ExitCode::usage, "open the scenario " + path,
                       "configs/ns3 holds those of the papers");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_scenario(text.str(), std::filesystem::path{path}.stem().string(), options);
}

}  // namespace onehop::sim
