// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/settings.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <charconv>

#include "control/transfer/port/dpdk_host.hpp"
#include "control/transfer/port/local_address.hpp"
#include "control/transfer/port/ports.hpp"
#include "engine/base/display_name.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/crypto/key_schedule.hpp"
#include "engine/disk/file_io.hpp"

namespace onehop::transfer {

namespace {

struct Choice {
  const char* option;
  std::string api::Options::*value;  // null: not one that both ends have
  std::vector<std::string> words;
};

std::vector<Choice> choices() {
  using api::Options;
  return {{"--io", &Options::io, port_words()},
          {"--xdp-mode", &Options::xdp_mode, {"auto", "zero-copy", "copy", "skb"}},
          {"--target", &Options::target, {"under", "mid", "zero"}},
          {"--bounds", &Options::bounds, {"measured", "strict"}},
          {"--repair", &Options::repair, {"eager", "lazy"}},
          {"--priority", &Options::priority, {"background", "normal"}},
          {"--poll", &Options::poll, {"adaptive", "busy"}},
          {"--aead", nullptr, {"auto", "ipsec-mb", "openssl", "chacha20"}},
          {"--digest", &Options::digest, {"xxh3", "sha256"}},
          {"--file-io", &Options::file_io, disk::file_io_names()},
          {"--direct-io", &Options::direct_io, {"auto", "always", "never"}},
          {"--durability", nullptr, {"batch", "file", "none"}},
          {"--symlinks", nullptr, {"skip", "error", "copy", "follow-inside"}},
          {"recv --symlinks", nullptr, {"refuse", "take"}},
          {"--on-exist", nullptr, {"ask", "resume", "skip", "rename", "overwrite"}}};
}

}  // namespace

std::vector<std::string> words_of(std::string_view option) {
  for (Choice& choice : choices())
    if (choice.option == option) return std::move(choice.words);
  return {};
}

std::size_t place_of(std::string_view option, std::string_view value) {
  const std::vector<std::string> words = words_of(option);
  const auto at = std::ranges::find(words, value);
  return at == words.end() ? 0 : static_cast<std::size_t>(at - words.begin());
}

Result<void> check_word(std::string_view option, const std::string& value) {
  const std::vector<std::string> words = words_of(option);
  if (std::ranges::find(words, value) != words.end()) return success();
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : "|") + word;
  return Error{ExitCode::usage, "read " + std::string{option}, "it cannot be '" + value + "'",
               "Take " + list};
}

Result<void> check_send_options(const api::SendOptions& options) {
  constexpr double wait_seconds_max = 3600;
  ONEHOP_TRYV(check_word("--symlinks", options.symlinks));
  if (options.stream_fd >= 0) {
    if (!options.paths.empty() || options.stream_name.empty())
      return Error{ExitCode::usage, "send a stream",
                   options.paths.empty() ? "it has no name" : "there are paths beside it",
                   "Write onehop send - --name NAME"};
    ONEHOP_TRYV(list::validate({{{.name = options.stream_name, .kind = list::EntryKind::piece}}}));
  }
  if (options.has_fragments && options.common.frame_bytes != 0)
    return Error{ExitCode::usage, "use --fragment with --frame-size",
                 "a datagram in fragments is as large as UDP allows", "Leave one of them out"};
  if (options.has_mac_noack && options.common.repair != "lazy")
    return Error{ExitCode::usage, "use --mac-noack",
                 "without the MAC's acknowledgements each loss on the air is a lost frame, which "
                 "eager repair would take for congestion",
                 "Add --repair lazy"};
  if (options.wait_seconds >= 0 && options.wait_seconds <= wait_seconds_max)  // NaN is not
    return success();
  return Error{ExitCode::usage, "wait for a receiver",
               fmt::format("it cannot be for {} s", options.wait_seconds), "Take 0 to 3600"};
}

Result<Settings> read_settings(const api::Options& options) {
  Settings settings{options};
  for (const Choice& choice : choices()) {
    if (choice.value == nullptr || (options.*choice.value).empty()) continue;
    ONEHOP_TRYV(check_word(choice.option, options.*choice.value));
  }
  if (!options.law_params.empty()) {
    ONEHOP_TRY(law, law::read_params(options.law_params, options.law_params_name, settings.params));
    settings.params_of = std::move(law);
  }
  ONEHOP_TRYV(law::make_law(law_options(settings)));
  if (!settings.params_of.empty() &&
      !law::uses_params(options.law, options.has_qcut, settings.params_of))
    return Error{ExitCode::usage, "use the law parameters of --config with --law " + options.law,
                 "they are for " + settings.params_of,
                 "Leave out the parameter file, or take the law that it is for"};
  if (options.xdp_mode != "auto" && options.io != "afxdp")
    return Error{ExitCode::usage, "use --xdp-mode " + options.xdp_mode,
                 "--io " + options.io + " may have no AF_XDP to use it with", "Add --io afxdp"};
  if (!options.rate_max.empty()) {
    ONEHOP_TRYV(parse_rate(options.rate_max));
  }
  if (!crypto::is_key_interval(options.key_interval_packets))
    return Error{ExitCode::usage,
                 "use --key-interval " + std::to_string(options.key_interval_packets),
                 "it is not a power of two", "Take 256, 512, ... 4194304"};
  ONEHOP_TRYV(choose_core(options.core));
  ONEHOP_TRYV(check_eal(settings));
  return settings;
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  const auto refuse = [&](std::string cause) {
    return Error{ExitCode::usage, "read the address '" + text + "'", std::move(cause),
                 "Write HOST, HOST:PORT, [IPv6] or [IPv6]:PORT"};
  };
  // What resolves names stops at a zero byte, and would connect to something else.
  if (text.find('\0') != std::string::npos) return refuse("it has a zero byte");
  Endpoint endpoint{"", default_port};
  std::string port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string::npos) return refuse("the bracket is not closed");
    endpoint.host = text.substr(1, close - 1);
    if (endpoint.host.find(':') == std::string::npos)
      return refuse("only an IPv6 address stands in brackets");
    if (close + 1 < text.size()) {
      if (text[close + 1] != ':') return refuse("after the bracket only :PORT may follow");
      port = text.substr(close + 2);
      if (port.empty()) return refuse("the port is missing");
    }
  } else if (const std::size_t colon = text.find(':');
             colon != std::string::npos && text.find(':', colon + 1) == std::string::npos) {
    endpoint.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return refuse("the port is missing");
  } else {
    endpoint.host = text;  // a bare IPv6 address has several colons and no port
  }
  if (!port.empty()) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
    if (error != std::errc{} || end != port.data() + port.size() || value == 0 || value > 65535)
      return refuse("the port is not a number from 1 to 65535");
    endpoint.port = static_cast<std::uint16_t>(value);
  }
  const auto address = IpAddress::parse(endpoint.host);
  if (address && address->is_link_local() && address->scope_id == 0)
    return refuse("a link-local address is of one interface, which it does not name: [" +
                  endpoint.host + "%INTERFACE]");
  return endpoint;
}

Result<Endpoint> parse_peer(const std::string& text, const std::string& interface) {
  // The kernel is asked for its addresses where this may be one of IPv6, which has two colons.
  const bool may_have_scope = std::ranges::count(text, ':') > 1;
  ONEHOP_TRY(
      peer, parse_endpoint(may_have_scope ? with_scope(text, interface, local_addresses()) : text));
  if (peer.host.ends_with("%IF") && !IpAddress::parse(peer.host))
    return Error{ExitCode::usage, "read the address '" + text + "'",
                 "IF stands for one of several interfaces of this machine",
                 "Write its name in place of IF: `ip link` lists them"};
  return std::move(peer);
}

law::LawOptions law_options(const Settings& settings) {
  return {.spec = settings.law,
          .target = settings.target,
          .bounds = settings.bounds,
          .has_qcut = settings.has_qcut,
          .is_repair_lazy = settings.repair == "lazy",
          .params = settings.params};
}

crypto::DigestKind digest_kind(const api::Options& options) {
  const bool is_stated = !options.receipt_file.empty();
  return is_stated || options.digest == "sha256" ? crypto::DigestKind::sha256
                                                 : crypto::DigestKind::xxh3;
}

bool prefers_chacha20(const Settings& settings) {
  return settings.aead == crypto::AeadBackend::chacha20 ||
         (settings.aead == crypto::AeadBackend::automatic && !crypto::has_aes_instructions());
}

int priority_of(const Settings& settings) {
  // From 256 on the kernel takes a priority for a TID, whatever the DSCP says. It takes
  // CAP_NET_ADMIN.
  //= Linux net/wireless/util.c, cfg80211_classify8021d()
  if (settings.tid) return 256 + *settings.tid;
  // pfifo_fast's lowest band and, on Wi-Fi, the background access category
  constexpr int lowest = 1;
  return settings.priority == "background" ? lowest : 0;
}

std::uint8_t dscp_of(const api::Options& options) {
  constexpr std::uint8_t cs1 = 8;  // RFC 3662: lower effort
  return options.priority == "background" ? cs1 : 0;
}

Result<std::uint64_t> random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed)
    return errno_error(ExitCode::internal_error, "draw a random number");
  return seed;
}

api::Error to_api(const Error& error) {
  return {static_cast<api::Status>(error.code), error.attempt, error.cause, error.hint};
}

Error from_api(const api::Error& error) {
  return {static_cast<ExitCode>(error.status), error.attempt, error.cause, error.hint};
}

Result<void> result_of(const api::Error& error) {
  if (error) return from_api(error);
  return success();
}

list::ScanOptions scan_options(const api::SendOptions& options) {
  list::ScanOptions scan{.is_one_file_system = options.is_one_file_system};
  for (const std::string& pattern : options.excludes) scan.rules.add(pattern);
  scan.symlinks = choice<list::Symlinks>("--symlinks", options.symlinks);
  return scan;
}

api::LeftOut left_out_of(std::span<const list::ScanProblem> problems) {
  api::LeftOut left_out;
  for (const list::ScanProblem& problem : problems)
    left_out.items.push_back({.path = display_name(problem.path),
                              .kind = std::string{list::name_of(problem.kind)},
                              .cause = problem.cause,
                              .is_failure = list::is_failure(problem)});
  return left_out;
}

}  // namespace onehop::transfer
