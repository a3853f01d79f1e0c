// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// offer-tool ADDRESS PORT (names NAME... | many COUNT | sized BYTES): a sender that knows the code
// (ONEHOP_CODE) and offers what `onehop send` does not: any names, a volume of many files, sizes
// that cannot be. It prints what the receiver says to that, "Accept" or "Refuse: TEXT", and hangs
// up. Exit code: 0 it was answered, 1 it was not.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/control/session/raw_peer.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

list::Manifest manifest_of(std::string_view what, std::span<char*> words) {
  list::Manifest manifest;
  if (what == "names")
    for (const char* name : words) manifest.files.push_back({name, 1, 0644});
  if (what == "many") {
    const std::size_t count = std::stoul(words[0]);
    manifest.files.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      manifest.files.push_back({"empty-" + std::to_string(i), 0, 0644});
  }
  if (what == "sized") manifest.files.push_back({"large", std::stoull(words[0]), 0644});
  if (manifest.files.empty()) throw std::invalid_argument{"what to offer is not known"};
  return manifest;
}

std::vector<Message> messages_of(std::string_view what, std::span<char*> words) {
  const list::Manifest manifest = manifest_of(what, words);
  Offer offer;
  offer.frame_body_max_bytes = 1400;
  offer.data_port = 40'000;
  std::vector<Message> messages{offer};
  for (std::size_t i = 0; i < manifest.files.size(); i += manifest_entries_per_part_max) {
    const auto begin = manifest.files.begin() + static_cast<std::ptrdiff_t>(i);
    const auto count = std::min(manifest_entries_per_part_max, manifest.files.size() - i);
    messages.push_back(ManifestPart{{begin, begin + static_cast<std::ptrdiff_t>(count)}});
  }
  messages.push_back(VolumeEnd{list::manifest_hash(manifest), true});
  return messages;
}

int run(std::span<char*> words) {
  const char* const code = std::getenv("ONEHOP_CODE");
  if (words.size() < 5 || code == nullptr)
    throw std::invalid_argument{"words or ONEHOP_CODE are missing"};
  asio::io_context io;
  RawPeer peer{io, {.role = Role::sender}, code};
  tcp::socket socket{io};
  socket.connect(
      {asio::ip::make_address(words[1]), static_cast<std::uint16_t>(std::stoul(words[2]))});
  // The usual limits: RawPeer's own are of tests that wait for a silence, and many names take
  // a receiver some seconds.
  peer.channel =
      std::make_shared<Channel>(std::move(socket), peer.tls, SessionLimits{}, Endpoint{});
  asio::co_spawn(io, peer.speak(messages_of(words[3], words.subspan(4)), Role::sender),
                 [](const std::exception_ptr&) {});
  while (!peer.is_over && peer.find<Accept>() == nullptr && peer.find<Refuse>() == nullptr &&
         peer.find<Failure>() == nullptr)
    io.run_one_for(std::chrono::seconds{60});
  if (peer.find<Accept>() != nullptr) return std::puts("Accept"), 0;
  if (const auto* refuse = peer.find<Refuse>())
    return std::printf("Refuse: %s\n", refuse->text.c_str()), 0;
  if (const auto* failure = peer.find<Failure>())
    return std::printf("Failure: %s\n", failure->text.c_str()), 0;
  return std::puts("it hung up"), 1;
}

}  // namespace

int main(int argc, char** argv) try {
  return run({argv, static_cast<std::size_t>(argc)});
} catch (const std::exception& error) {
  std::fprintf(stderr, "offer-tool: %s\n", error.what());
  return 1;
}
