// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/watch/telemetry.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace onehop::watch {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t number_max = std::int64_t{1} << 62;
constexpr std::size_t text_bytes_max = 64, details_max = 32;
constexpr std::size_t shares_max = 16;

Json head_of(std::string_view type) { return {{"schema_version", schema_version}, {"type", type}}; }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
/// known is null for what 0 stands for: nobody knows.
Json known(std::int64_t value) { return value > 0 ? Json(value) : Json(nullptr); }

Json buffer_json(std::string_view name, const BufferView& b) {
  return {{"name", name},
          {"scope", b.scope},
          {"occupancy_bytes", b.occupancy_bytes},
          {"target_bytes", b.target_bytes},
          {"under_bytes", or_null(b.under_bytes)},
          {"over_bytes", or_null(b.over_bytes)},
          {"limit_bytes", known(b.limit_bytes)},
          {"capacity_bytes", known(b.capacity_bytes)},
          {"drain_bps", b.drain_bps},
          {"allowed_bps", or_null(b.allowed_bps)},
          {"takes_part", b.takes_part},
          {"refused_total", b.refused_total}};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// Reader takes members of an object and remembers the first that is not as promised.
class Reader {
 public:
  explicit Reader(const Json& object) : object_{object} {}

  std::int64_t number(const char* key, std::int64_t least = 0) {
    const auto value = maybe_number(key, least);
    if (!value) fail(key, "is missing");
    return value.value_or(0);
  }
  std::optional<std::int64_t> maybe_number(const char* key, std::int64_t least = 0) {
    const Json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number_integer() ||
        (found->is_number_unsigned() && found->get<std::uint64_t>() > number_max)) {
      fail(key, "is not a whole number within its bounds");
      return std::nullopt;
    }
    const auto value = found->get<std::int64_t>();
    if (value < least || value > number_max) {
      fail(key, "is not a whole number within its bounds");
      return std::nullopt;
    }
    return value;
  }
  double real(const char* key) {
    const Json* found = find(key);
    if (found == nullptr || !found->is_number() || !std::isfinite(found->get<double>()) ||
        found->get<double>() < 0) {
      fail(key, "is no number of at least 0");
      return 0;
    }
    return std::min(found->get<double>(), 1e15);
  }
  bool flag(const char* key) {
    const Json* found = find(key);
    if (found == nullptr || !found->is_boolean()) {
      fail(key, "is neither true nor false");
      return false;
    }
    return found->get<bool>();
  }
  std::string text(const char* key) {
    const Json* found = find(key);
    if (found == nullptr || !found->is_string()) {
      fail(key, "is no text");
      return {};
    }
    return printable(found->get<std::string>());
  }
  std::string maybe_text(const char* key) {
    return find(key) == nullptr ? std::string{} : text(key);
  }
  template <class E>
  E word(const char* key, E last) {
    const std::string found = text(key);
    for (int i = 0; i <= static_cast<int>(last); ++i)
      if (found == name_of(static_cast<E>(i))) return static_cast<E>(i);
    fail(key, "is a word that this version does not know");
    return {};
  }
  std::uint64_t count(const char* key) { return static_cast<std::uint64_t>(number(key)); }
  std::map<std::string, std::int64_t> shares(const char* key) {
    std::map<std::string, std::int64_t> out;
    const Json* found = find(key);
    if (found == nullptr) return out;
    if (!found->is_object() || found->size() > shares_max) fail(key, "is no short object");
    Reader members{*found};
    for (const auto& [name, share] : found->items())
      out[printable(name)] = members.number(name.c_str());
    if (!members.failure().empty()) fail(key, "holds something else than shares");
    return out;
  }
  /// find gives null for a member that is not there or is null.
  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void fail(std::string_view key, std::string_view what) {
    if (failure_.empty()) failure_ = std::string{key} + " " + std::string{what};
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  /// printable: what a terminal may be given, whoever wrote it.
  static std::string printable(std::string text) {
    if (text.size() > text_bytes_max) text.resize(text_bytes_max);
    for (char& c : text)
      if (c < ' ' || c > '~') c = '?';
    return text;
  }

 private:
  const Json& object_;
  std::string failure_;
};

Error refuse(std::string cause) {
  return {ExitCode::internal_error, "read what the transfer tells", std::move(cause),
          "Watch it with the onehop that runs it"};
}

std::string read_buffer(const Json& json, std::string_view name, BufferView& b) {
  if (!json.is_object()) return "buffers holds something else than objects";
  Reader r{json};
  if (r.text("name") != name) r.fail("name", "is not " + std::string{name});
  b = {.scope = r.text("scope"),
       .occupancy_bytes = r.number("occupancy_bytes"),
       .target_bytes = r.number("target_bytes"),
       .under_bytes = r.maybe_number("under_bytes"),
       .over_bytes = r.maybe_number("over_bytes"),
       .limit_bytes = r.maybe_number("limit_bytes").value_or(0),
       .capacity_bytes = r.maybe_number("capacity_bytes").value_or(0),
       .drain_bps = r.number("drain_bps"),
       .allowed_bps = r.maybe_number("allowed_bps", -number_max),
       .takes_part = r.flag("takes_part"),
       .refused_total = r.count("refused_total")};
  return r.failure();
}

void read_details(const Json& json, Telemetry& t) {
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (key == "sensor" && value.is_string())
      t.sensor = Reader::printable(value.get<std::string>());
    else if (value.is_number_integer() && t.details.size() < details_max)
      t.details.emplace_back(Reader::printable(key), value.get<std::int64_t>());
  }
}

Result<Message> read_telemetry(const Json& json) {
  Reader r{json};
  Telemetry t;
  t.pid = r.number("pid", 1);
  t.role = r.word("role", api::Role::receiving);
  t.version = r.text("version");
  t.t_ns = r.number("t_ns");
  t.phase = r.word("phase", api::Phase::listening);
  t.peer = r.maybe_text("peer");
  t.interface = r.text("interface");
  t.io = r.text("io");
  t.io_mode = r.text("io_mode");
  t.law = r.text("law");
  t.repair = r.text("repair");
  t.link_source = r.text("link_source");
  t.elapsed_ns = r.number("elapsed_ns");
  t.bytes_done = r.count("bytes_done");
  t.bytes_expected = r.count("bytes_expected");
  t.files_done = static_cast<std::uint64_t>(r.maybe_number("files_done").value_or(0));
  t.files_total = static_cast<std::uint64_t>(r.maybe_number("files_total").value_or(0));
  t.is_all_known = r.find("is_all_known") != nullptr && r.flag("is_all_known");
  t.goodput_bps = r.number("goodput_bps");
  if (r.find("eta_seconds") != nullptr) t.eta_seconds = r.real("eta_seconds");
  t.rate_bps = r.maybe_number("rate_bps");
  t.backlog_max_bytes = r.maybe_number("backlog_max_bytes").value_or(0);
  t.bottleneck = r.maybe_text("bottleneck");
  if (r.find("cap") != nullptr) t.cap = r.word("cap", api::Cap::law);
  t.link_down_ns = r.maybe_number("link_down_ns");
  t.bottleneck_permille = r.shares("bottleneck_permille");
  t.is_degraded = r.find("is_degraded") != nullptr && r.flag("is_degraded");
  t.srtt_ns = r.number("srtt_ns");
  t.packets_sent_total = r.count("packets_sent_total");
  t.packets_lost_total = r.count("packets_lost_total");
  t.retransmitted_bytes_total = r.count("retransmitted_bytes_total");
  t.auth_failures_total = r.count("auth_failures_total");
  t.cpu_seconds = r.real("cpu_seconds");
  t.link_rate_bps = r.maybe_number("link_rate_bps");
  if (const Json* details = r.find("details")) read_details(*details, t);
  const Json* buffers = r.find("buffers");
  if (buffers == nullptr || !buffers->is_array() || buffers->size() != buffer_names.size())
    return refuse("it does not tell of three buffers");
  for (std::size_t i = 0; i < buffer_names.size(); ++i) {
    if (const std::string fault = read_buffer((*buffers)[i], buffer_names[i], t.buffers[i]);
        !fault.empty())
      return refuse("of " + std::string{buffer_names[i]} + ", " + fault);
  }
  if (!r.failure().empty()) return refuse(r.failure());
  return Message{std::move(t)};
}

}  // namespace

std::string_view main_bottleneck(const Telemetry& telemetry) {
  const auto& shares = telemetry.bottleneck_permille;
  const auto most = std::ranges::max_element(shares, {}, [](const auto& s) { return s.second; });
  return most != shares.end() ? most->first : telemetry.bottleneck;
}

std::string line_of(const Telemetry& t) {
  const bool is_sending = t.role == api::Role::sending;
  Json json = head_of("telemetry");
  const Json nothing = nullptr;
  json.update({{"pid", t.pid},
               {"role", name_of(t.role)},
               {"version", t.version},
               {"t_ns", t.t_ns},
               {"phase", name_of(t.phase)},
               {"peer", t.peer.empty() ? nothing : Json(t.peer)},
               {"interface", t.interface},
               {"io", t.io},
               {"io_mode", t.io_mode},
               {"law", t.law},
               {"repair", t.repair},
               {"link_source", t.link_source},
               {"elapsed_ns", t.elapsed_ns},
               {"bytes_done", t.bytes_done},
               {"bytes_expected", t.bytes_expected},
               {"files_done", t.files_done},
               {"files_total", t.files_total},
               {"is_all_known", t.is_all_known},
               {"goodput_bps", t.goodput_bps},
               {"eta_seconds", or_null(t.eta_seconds)},
               {"rate_bps", is_sending ? or_null(t.rate_bps) : nothing},
               {"backlog_max_bytes", is_sending ? Json(t.backlog_max_bytes) : nothing},
               {"bottleneck", is_sending ? Json(t.bottleneck) : nothing},
               {"cap", t.cap == api::Cap::none ? nothing : Json(name_of(t.cap))},
               {"link_down_ns", or_null(t.link_down_ns)},
               {"bottleneck_permille", is_sending ? Json(t.bottleneck_permille) : nothing},
               {"is_degraded", is_sending ? Json(t.is_degraded) : nothing},
               {"srtt_ns", t.srtt_ns},
               {"packets_sent_total", t.packets_sent_total},
               {"packets_lost_total", t.packets_lost_total},
               {"retransmitted_bytes_total", t.retransmitted_bytes_total},
               {"auth_failures_total", t.auth_failures_total},
               {"cpu_seconds", t.cpu_seconds},
               {"link_rate_bps", or_null(t.link_rate_bps)}});
  Json details{{"sensor", t.sensor}};
  for (const auto& [key, value] : t.details) details[key] = value;
  json["details"] = details;
  Json buffers = Json::array();
  for (std::size_t i = 0; i < buffer_names.size(); ++i)
    buffers.push_back(buffer_json(buffer_names[i], t.buffers[i]));
  json["buffers"] = buffers;
  return dump(json);
}

std::string line_of(const Ended& ended) {
  Json json = head_of("end");
  json.update({{"exit_code", ended.exit_code},
               {"bytes_total", ended.bytes_total},
               {"seconds", ended.seconds},
               {"goodput_bps", ended.goodput_bps}});
  return dump(json);
}

std::string line_of(const Refused& refused) {
  Json json = head_of("refused");
  json["reason"] = refused.reason;
  return dump(json);
}

Result<Message> read_line(std::string_view line) {
  if (line.size() > line_bytes_max) return refuse("a line is longer than 64 KiB");
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return refuse("a line is no JSON object");
  Reader r{json};
  const auto version = r.maybe_number("schema_version");
  if (version != schema_version)
    return refuse("its schema version is " +
                  (version ? std::to_string(*version) : std::string{"missing"}) +
                  ", and this onehop reads 1");
  const std::string type = r.maybe_text("type");
  if (type == "telemetry") return read_telemetry(json);
  if (type == "end") {
    const Ended ended{
        .exit_code = static_cast<int>(std::min<std::int64_t>(r.number("exit_code"), 255)),
        .bytes_total = r.count("bytes_total"),
        .seconds = r.real("seconds"),
        .goodput_bps = r.number("goodput_bps")};
    if (!r.failure().empty()) return refuse(r.failure());
    return Message{ended};
  }
  if (type == "refused") return Message{Refused{r.maybe_text("reason")}};
  return refuse("a line's type is '" + type + "'");
}

}  // namespace onehop::watch
