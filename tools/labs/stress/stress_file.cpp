// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/stress_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "control/law/make_law.hpp"
#include "engine/base/rate_text.hpp"

namespace onehop::stress {

namespace {

constexpr std::size_t events_max = 100'000;
constexpr std::int64_t file_bytes_max = 1'000'000'000;

std::string joined(std::initializer_list<std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

/// Table reads one table of the file strictly.
class Table {
 public:
  Table(const toml::table& table, const std::string& path) : table_{table}, path_{path} {}

  [[nodiscard]] Error refuse(std::string_view key, const std::string& cause) const {
    const toml::node* const node = table_.get(key);
    const auto line = node != nullptr ? node->source().begin.line : table_.source().begin.line;
    return {.code = ExitCode::usage,
            .attempt = fmt::format("read '{}' in {}:{}", key, path_, line),
            .cause = cause,
            .hint = "configs/stress has examples"};
  }
  [[nodiscard]] Result<void> only(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : table_)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        return refuse(key.str(),
                      fmt::format("there is no such key here; allowed: {}", joined(known)));
    return success();
  }
  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
  [[nodiscard]] Result<std::string> text(std::string_view key, std::string otherwise) const {
    if (!has(key)) return otherwise;
    const auto value = table_[key].value_exact<std::string>();
    if (!value) return refuse(key, "it must be a text in quotes");
    return *value;
  }
  [[nodiscard]] Result<std::string> word(std::string_view key, std::string otherwise,
                                         std::initializer_list<std::string_view> known) const {
    ONEHOP_TRY(value, text(key, std::move(otherwise)));
    if (std::find(known.begin(), known.end(), value) == known.end())
      return refuse(key, fmt::format("'{}' is not known; allowed: {}", value, joined(known)));
    return value;
  }
  [[nodiscard]] Result<bool> flag(std::string_view key) const {
    if (!has(key)) return false;
    const auto value = table_[key].value_exact<bool>();
    if (!value) return refuse(key, "it must be true or false");
    return *value;
  }
  [[nodiscard]] Result<double> number(std::string_view key, double otherwise, double min,
                                      double max) const {
    if (!has(key)) return otherwise;
    const auto value = table_[key].value<double>();
    if (!value || !(*value >= min && *value <= max))
      return refuse(key, fmt::format("it must be a number from {} to {}", min, max));
    return *value;
  }
  [[nodiscard]] Result<std::uint64_t> whole(std::string_view key, std::uint64_t otherwise,
                                            std::int64_t min, std::int64_t max) const {
    if (!has(key)) return otherwise;
    const auto value = table_[key].value_exact<std::int64_t>();
    if (!value || *value < min || *value > max)
      return refuse(key, fmt::format("it must be a whole number from {} to {}", min, max));
    return static_cast<std::uint64_t>(*value);
  }
  [[nodiscard]] Result<Nanos> ms(std::string_view key, double otherwise, double min,
                                 double max) const {
    ONEHOP_TRY(value, number(key, otherwise, min, max));
    return Nanos{static_cast<Nanos::rep>(value * 1e6)};
  }
  [[nodiscard]] const toml::table& table() const { return table_; }

 private:
  const toml::table& table_;
  const std::string& path_;
};

Result<Fault> read_fault(const Table& table, const std::string& name) {
  const auto fault = fault_of(name);
  if (!fault)
    return table.refuse(
        table.has("fault") ? "fault" : "faults",
        fmt::format("'{}' is not known; allowed: {}", name, fault_names(every_fault)));
  return *fault;
}

Result<void> read_events(const toml::table& root, const std::string& path, Schedule& schedule) {
  const Table top{root, path};
  if (!top.has("event")) return success();
  const toml::array* const events = root["event"].as_array();
  if (events == nullptr) return top.refuse("event", "it must be a list: [[event]]");
  const double span_ms = static_cast<double>(schedule.span.count()) / 1e6;
  for (const toml::node& node : *events) {
    if (!node.is_table()) return top.refuse("event", "it must be a list: [[event]]");
    const Table table{*node.as_table(), path};
    ONEHOP_TRYV(table.only({"at_ms", "for_ms", "every_ms", "fault"}));
    ONEHOP_TRY(name, table.text("fault", ""));
    ONEHOP_TRY(fault, read_fault(table, name));
    ONEHOP_TRY(at, table.ms("at_ms", 0, 0, span_ms));
    ONEHOP_TRY(span, table.ms("for_ms", 1, 0.001, 60'000));
    ONEHOP_TRY(every, table.ms("every_ms", span_ms + 1, 0.001, 1e6));
    schedule.kinds |= bit_of(fault);
    for (Nanos begin = at; begin < schedule.span; begin += every) {
      if (schedule.events.size() == events_max)
        return table.refuse("every_ms", fmt::format("there are more than {} events", events_max));
      schedule.events.push_back({.at = begin, .span = span, .fault = fault});
    }
  }
  return success();
}

Result<void> read_random(const toml::table& root, const std::string& path, DrawOptions& random) {
  random.events = 0;
  const Table top{root, path};
  if (!top.has("random")) return success();
  if (!root["random"].is_table()) return top.refuse("random", "it must be a table: [random]");
  const Table table{*root["random"].as_table(), path};
  ONEHOP_TRYV(table.only({"events", "faults"}));
  ONEHOP_TRY(events, table.whole("events", 200, 1, static_cast<std::int64_t>(events_max)));
  random.events = events;
  if (!table.has("faults")) return success();
  const toml::array* const names = table.table()["faults"].as_array();
  if (names == nullptr) return table.refuse("faults", "it must be a list of texts");
  random.kinds = 0;
  for (const toml::node& node : *names) {
    const auto name = node.value_exact<std::string>();
    if (!name) return table.refuse("faults", "it must be a list of texts");
    ONEHOP_TRY(fault, read_fault(table, *name));
    random.kinds |= bit_of(fault);
  }
  return success();
}

Result<void> read_rings(const Table& table, Schedule& schedule) {
  ONEHOP_TRY(ports, table.word("ports", "virtual", {"virtual", "rings"}));
  ONEHOP_TRY(tx_frames, table.whole("tx_frames", 256, 4, 4096));
  ONEHOP_TRY(rx_frames, table.whole("rx_frames", 1024, 8, 4096));
  for (const auto& [key, value] :
       {std::pair{"tx_frames", tx_frames}, std::pair{"rx_frames", rx_frames}})
    if ((value & (value - 1)) != 0) return table.refuse(key, "it must be a power of two");
  schedule.world.forward.ring_frames = schedule.world.backward.ring_frames = rx_frames;
  if (ports == "rings")
    schedule.world.rings = scenario::RingShape{.tx_frames = static_cast<std::uint32_t>(tx_frames),
                                               .rx_frames = static_cast<std::uint32_t>(rx_frames)};
  return success();
}

Result<void> read_world(const Table& table, Schedule& schedule) {
  scenario::WorldConfig& world = schedule.world;
  ONEHOP_TRY(law, table.text("law", "auto"));
  if (const auto made = law::make_law({.spec = law}); !made)
    return table.refuse("law", made.error().message());
  world.law = law;
  ONEHOP_TRY(has_qcut, table.flag("qcut"));
  world.has_qcut = has_qcut;
  ONEHOP_TRY(repair, table.word("repair", "eager", {"eager", "lazy"}));
  world.is_repair_lazy = repair == "lazy";
  world.has_loss_mask = true;
  ONEHOP_TRY(rate_text, table.text("rate", "50Mbit"));
  const auto rate = parse_rate(rate_text);
  if (!rate) return table.refuse("rate", rate.error().message());
  world.forward.rate = world.backward.rate = rate.value();
  ONEHOP_TRY(delay_us, table.whole("delay_us", 200, 1, 1'000'000));
  world.forward.delay = world.backward.delay = static_cast<std::int64_t>(delay_us) * 1us;
  ONEHOP_TRY(queue_bytes, table.whole("queue_bytes", 256 * 1024, 4 * 1514, 100'000'000));
  world.forward.queue_capacity = {static_cast<std::int64_t>(queue_bytes)};
  ONEHOP_TRY(is_drop_tail, table.flag("drop_tail"));
  world.forward.is_drop_tail = is_drop_tail;
  // As much as the link carries meanwhile; a longer one takes more memory than time.
  const std::int64_t carried_bytes = (rate.value() * schedule.span).count;
  const auto file_bytes_usual =
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(carried_bytes, 1, file_bytes_max));
  ONEHOP_TRY(file_bytes, table.whole("file_bytes", file_bytes_usual, 1, file_bytes_max));
  world.file_sizes = {file_bytes, 1};
  ONEHOP_TRY(frame_bytes, table.whole("frame_bytes", 1472, 600, 1472));
  world.frame_bytes = frame_bytes;
  ONEHOP_TRY(blocks, table.whole("blocks", 8, 1, 128));
  world.sender_slots = world.receiver_slots = blocks;
  ONEHOP_TRY(has_facts, table.flag("facts"));
  schedule.has_facts = has_facts;
  return read_rings(table, schedule);
}

}  // namespace

Result<StressFile> parse_stress_file(const std::string& text, const std::string& path) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Error{.code = ExitCode::usage,
                 .attempt = fmt::format("read {}:{}", path, error.source().begin.line),
                 .cause = std::string{error.description()},
                 .hint = "configs/stress has examples"};
  }
  const Table table{root, path};
  ONEHOP_TRYV(table.only({"description", "law", "qcut", "repair", "rate", "delay_us", "queue_bytes",
                          "drop_tail", "file_bytes", "frame_bytes", "ports", "tx_frames",
                          "rx_frames", "blocks", "facts", "span_ms", "event", "random"}));
  StressFile file;
  ONEHOP_TRY(description, table.text("description", ""));
  file.description = description;
  ONEHOP_TRY(span, table.ms("span_ms", 100, 1, 60'000));
  file.schedule.span = file.random.span = span;
  file.schedule.limit = span + limit_after;
  ONEHOP_TRYV(read_world(table, file.schedule));
  ONEHOP_TRYV(read_events(root, path, file.schedule));
  ONEHOP_TRYV(read_random(root, path, file.random));
  file.schedule.world.last_block_at = Instant{} + span;
  file.schedule.world.tick = 0ns;
  file.schedule.world.link_frames_max =
      4096 + static_cast<std::size_t>(file.schedule.world.forward.queue_capacity.count / 600);
  return file;
}

Result<StressFile> load_stress_file(const std::string& path) {
  std::ifstream file{path};
  if (!file)
    return errno_error(ExitCode::usage, "open the stress file " + path,
                       "configs/stress has examples");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_stress_file(text.str(), path);
}

Schedule schedule_from(const StressFile& file, std::uint64_t seed, std::uint64_t index) {
  Schedule schedule = file.schedule;
  schedule.seed = seed;
  schedule.index = index;
  if (file.random.events > 0) {
    const Schedule drawn = draw_schedule(seed, index, file.random);
    schedule.world.seed = drawn.world.seed;
    schedule.kinds |= drawn.kinds;
    schedule.events.insert(schedule.events.end(), drawn.events.begin(), drawn.events.end());
  } else {
    schedule.world.seed = seed + index;
  }
  std::stable_sort(schedule.events.begin(), schedule.events.end(),
                   [](const FaultEvent& a, const FaultEvent& b) { return a.at < b.at; });
  apply_world_faults(schedule);
  return schedule;
}

}  // namespace onehop::stress
