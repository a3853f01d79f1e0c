// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N5, D2: services on the system bus may be broken, or not the ones that they say they are.
// Whatever wpa_supplicant and NetworkManager answer, calls come back with a value or with an error
// that says its cause; names of interfaces, addresses and frequencies are such; and Formation takes
// every event that is made of a signal.
#include <net/if.h>

#include <algorithm>
#include <cctype>
#include <random>

#include "control/p2p/formation.hpp"
#include "control/p2p/network_manager.hpp"
#include "control/p2p/station.hpp"
#include "control/p2p/supplicant.hpp"
#include "tests/fuzz/bus_server.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr int frequency_max = 100'000;  // MHz
constexpr std::size_t address_letters = 17;

template <class T>
void check_result(const Result<T>& result) {
  if (result.has_value()) return;
  ONEHOP_CHECK(!result.error().attempt.empty());
  ONEHOP_CHECK(!result.error().cause.empty());
}

void check_interface(const std::string& name) {
  ONEHOP_CHECK(!name.empty());
  ONEHOP_CHECK(name.size() < IF_NAMESIZE);
  ONEHOP_CHECK(std::ranges::all_of(
      name, [](unsigned char c) { return std::isgraph(c) != 0 && c != '/' && c != ':'; }));
}

void check_group(const p2p::Group& group) {
  check_interface(group.interface_name);
  ONEHOP_CHECK(group.frequency_mhz >= 0);
  ONEHOP_CHECK(group.frequency_mhz <= frequency_max);
}

void check_event(const p2p::Event& event) {
  if (const auto* found = std::get_if<p2p::PeerFound>(&event)) {
    const std::string& address = found->peer.address;
    ONEHOP_CHECK(address.empty() || address.size() == address_letters);
    ONEHOP_CHECK(found->peer.signal_dbm >= -1000);
    ONEHOP_CHECK(found->peer.signal_dbm <= 1000);
  }
  if (const auto* agreed = std::get_if<p2p::Negotiated>(&event)) {
    ONEHOP_CHECK(agreed->frequency >= 0);
    ONEHOP_CHECK(agreed->frequency <= frequency_max);
  }
  if (const auto* started = std::get_if<p2p::GroupStarted>(&event)) check_group(started->group);
}

void use(p2p::Supplicant& supplicant) {
  check_interface(supplicant.interface());
  const auto groups = supplicant.groups();
  check_result(groups);
  if (groups)
    for (const p2p::Group& group : groups.value()) check_group(group);
  check_result(supplicant.device_name());
  check_result(supplicant.announce(true));
  check_result(supplicant.find({.span = 1s, .is_social = false, .frequency = 5180}));
  check_result(supplicant.connect({.peer_path = "/1", .peer_address = "02:00:00:00:00:01"}));
  check_result(supplicant.add_group({.frequency = 5180, .is_persistent = true}));
  check_result(p2p::leave_networks(supplicant, ""));
  (void)p2p::is_managed(supplicant.bus(), "wlan0");
  check_result(p2p::set_managed(supplicant.bus(), "wlan0", true));

  p2p::Plan plan;
  plan.task = p2p::Plan::Task::connect;
  p2p::Formation formation{plan};
  Instant now{1s};
  (void)formation.step(now, p2p::Begun{});
  check_result(supplicant.process([&](const p2p::Event& event) {
    check_event(event);
    (void)formation.step(now += 1s, event);
  }));
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  const std::size_t size = random() % 600;
  // Up to a drawn byte all answers are healthy, so that later ones are reached, too.
  const std::size_t healthy = random() % 8 == 0 ? size : random() % 40;
  for (std::size_t i = 0; i < size; ++i)
    out[i] = static_cast<std::byte>(i < healthy ? random() % 4 : random());
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::BusServer server;
  server.answer_from({data, data + size});
  auto supplicant = p2p::Supplicant::open({.may_create = size % 2 == 0});
  check_result(supplicant);
  if (!supplicant) return 0;
  ++fuzz::accepted_total;
  use(supplicant.value());
  return 0;
}
