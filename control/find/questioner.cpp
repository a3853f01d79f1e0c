// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/find/questioner.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "engine/base/system/interface.hpp"

namespace onehop::find {

namespace {

using Wait = boost::asio::posix::stream_descriptor::wait_type;

// A question may be lost, and on Wi-Fi it goes unacknowledged to all. The first ones follow each
// other soon, for a person waits for the list.
constexpr std::array<Nanos, 2> first_pauses{100ms, 200ms};
constexpr Nanos repeat_pause = 1s;
constexpr int answers_per_turn_max = 256;  // then timers have their turn

Nonce make_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

}  // namespace

Questioner::Questioner(boost::asio::io_context& io, Options options, std::function<void()> on_new)
    : io_{io},
      options_{std::move(options)},
      on_new_{std::move(on_new)},
      nonce_{make_nonce()},
      timer_{io} {}

void Questioner::start() {
  open(true);
  open(false);
  ask();
}

void Questioner::open(bool is_v6) {
  auto fd = open_asking_socket(is_v6);
  if (!fd) return;  // a machine without IPv6
  mouths_.push_back(std::make_unique<Mouth>(
      Mouth{is_v6, boost::asio::posix::stream_descriptor{io_, fd.value().release()}}));
  wait(*mouths_.back());
}

void Questioner::ask() {
  const QuestionBytes question = encode(Question{nonce_});
  links_ = list_links(options_.interface);
  refused_.clear();
  for (const Link& link : links_) {
    bool is_sent = false;
    for (const auto& mouth : mouths_) {
      if (!link.has_carrier || !link.has_family(mouth->is_v6)) continue;
      if (send_to_group(mouth->socket.native_handle(), link, mouth->is_v6, group_port, question))
        is_sent = true;
      else
        refused_[link.name] = errno_text(errno);
    }
    if (is_sent) refused_.erase(link.name);  // the other family is not ready, or not let out
  }
  const auto asked = static_cast<std::size_t>(asked_total_++);
  timer_.expires_after(asked < first_pauses.size() ? first_pauses[asked] : repeat_pause);
  timer_.async_wait([this](const boost::system::error_code& stopped) {
    if (!stopped) ask();
  });
}

void Questioner::test_reach() {
  const QuestionBytes question = encode(Question{nonce_});
  for (const Link& link : links_)
    for (const auto& mouth : mouths_) {
      const auto local = Endpoint::of_socket(mouth->socket.native_handle());
      if (!link.has_carrier || !link.has_family(mouth->is_v6) || !local) continue;
      // From the port that answers come from.
      if (const auto other = open_group_socket(link, mouth->is_v6))
        (void)send_to_group(other.value().get(), link, mouth->is_v6, local.value().port, question,
                            Reach::self);
    }
}

void Questioner::wait(Mouth& mouth) {
  mouth.socket.async_wait(Wait::wait_read, [this, &mouth](const boost::system::error_code& error) {
    if (error) return;
    std::array<std::byte, question_bytes + 1> room;
    for (int i = 0; i < answers_per_turn_max; ++i) {
      const auto datagram = receive_datagram(mouth.socket.native_handle(), room);
      if (!datagram) break;
      take(*datagram);
    }
    wait(mouth);
  });
}

BytesPerSecond Questioner::rate_of(const std::string& interface) {
  const auto [known, is_new] = rates_.try_emplace(interface);
  if (is_new) known->second = read_link_rate(interface);
  return known->second;
}

void Questioner::take(const Datagram& datagram) {
  const auto link = std::ranges::find(links_, datagram.ifindex, &Link::ifindex);
  if (link == links_.end()) return;
  if (const auto own = decode_question(datagram.bytes); own && own->nonce == nonce_)
    reached_.insert(link->ifindex);
  const auto answer = decode_answer(datagram.bytes);
  if (!answer || answer->nonce != nonce_) return;
  if (answer->is_pairing != options_.is_pairing) return;
  const bool is_called = options_.name.empty() || options_.shown(answer->name) == options_.name;
  if (!is_called && !(options_.device_of && options_.device_of(*answer) == options_.name)) return;
  if (receivers_.note(*answer, way_of(*link, datagram.from.address), options_.device_of)) on_new_();
}

Way Questioner::way_of(const Link& link, const IpAddress& address) {
  return {.address = address,
          .interface = link.name,
          .medium = link.medium,
          .rate = rate_of(link.name),
          .is_one_hop = link.is_near(address)};
}

void Questioner::note_hint(const Answer& said, const Endpoint& place, unsigned ifindex) {
  const auto link = std::ranges::find(links_, ifindex, &Link::ifindex);
  if (link != links_.end() && receivers_.note_hint(said, way_of(*link, place.address))) on_new_();
}

}  // namespace onehop::find
