// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/side.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <ctime>

#include "engine/base/display_name.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/system/descriptors.hpp"

namespace onehop::transfer {

Side::Side(const api::Options& options, api::Handler handler, api::Role role)
    : events_{std::move(handler)}, settings_{options}, path_{io_, settings_, events_, role} {
  if (auto read = read_settings(options); read.has_value())
    settings_ = std::move(read).value();
  else
    fault_ = read.error();
}

Result<void> Side::check() const {
  ONEHOP_TRYV(check_own());
  if (fault_) return *fault_;
  return success();
}

Result<void> Side::open() {
  ONEHOP_TRYV(check());
  ONEHOP_TRYV(raise_descriptor_limit());
  is_open_ = true;
  return open_own();
}

Result<void> Side::set_code(std::string_view code) {
  ONEHOP_TRY(pairing, session::PairingCode::from_text(code));
  code_ = std::move(pairing);
  return success();
}

Result<void> Side::set_devices(const api::Devices& devices) {
  is_remembered_ = devices.is_remembered;
  const bool is_made = is_remembered_ || devices.is_key_made;
  ONEHOP_TRY(folder, pair::PrivateFolder::open(devices.folder, ::geteuid(), is_made));
  std::optional<pair::DeviceKey> key;
  if (folder) {
    ONEHOP_TRY(there, pair::DeviceKey::read(*folder));
    key = std::move(there);
    if (!key && is_made) {
      ONEHOP_TRY(made, pair::DeviceKey::read_or_make(*folder));
      key = std::move(made);
    }
  }
  if (key) {
    ONEHOP_TRY(book, pair::PeerBook::open(devices.folder, ::geteuid(), is_made));
    device_ = std::make_shared<pair::Identity>(pair::Identity{std::move(*key), devices.name, {}});
    book_ = std::move(book);
    use_book();
  }
  if (devices.to.empty()) return success();
  const pair::Peer* const peer = book_ ? book_->find(devices.to) : nullptr;
  if (peer == nullptr)
    return Error{ExitCode::usage, "send to " + devices.to, "no paired device is called so",
                 "onehop peers lists them"};
  peer_name_ = peer->name;
  return set_code(pair::to_hex(peer->secret.bytes()));  // of the sender's token alone
}

void Side::use_book() {
  device_->peers.clear();
  for (const pair::Peer& peer : book_->peers())
    device_->peers.push_back(std::make_shared<const pair::Peer>(peer));
}

void Side::refresh_devices() {
  if (!book_) return;
  const auto read = book_->read();
  if (read) use_book();
  if (std::exchange(is_book_fault_told_, read.has_error()) || read) return;
  events_.warn("paired devices stay as they were known: " + read.error().message());
}

void Side::use_devices(session::SessionOptions& options, bool is_pairing) const {
  options.device = device_;
  options.introduction = is_pairing       ? session::Introduction::only
                         : is_remembered_ ? session::Introduction::beside
                                          : session::Introduction::none;
}

session::SessionEnd Side::told(const session::SessionEnd& end) const {
  if (end.code != ExitCode::done) events_.emit(to_api(end.error));
  return end;
}

Result<void> Side::keep(pair::Peer device) {
  // What a terminal does not show as it is, or --to takes for a port or a place, is no name here.
  if (display_name(device.name) != device.name)
    device.name = "device-" + pair::fingerprint(device.key).substr(0, 4);
  std::ranges::replace_if(
      device.name, [](char c) { return c == ':' || c == '@'; }, '-');
  device.paired = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  const std::string print = pair::fingerprint(device.key);
  ONEHOP_TRY(name, book_->keep(std::move(device)));
  use_book();
  events_.emit(api::Paired{name, print});
  return success();
}

Result<session::SessionEnd> Side::run() {
  try {
    if (!is_open_) {
      ONEHOP_TRYV(open());
    }
    auto end = run_own();
    path_.close();
    return end;
  } catch (const std::bad_alloc& refused) {
    return memory_error("run", refused);
  }
}

void Side::interrupt() {
  // What is posted before run() is the first that it does.
  if (!is_interrupted_.exchange(true)) boost::asio::post(io_, [this] { interrupt_own(); });
}

}  // namespace onehop::transfer
