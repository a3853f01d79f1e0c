// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/receive_session.hpp"

#include <malloc.h>

#include <cerrno>

#include "engine/base/time.hpp"

namespace onehop::transfer {

ReceiveSession::ReceiveSession(api::ReceiveOptions options, Shared shared)
    : options_{std::move(options)},
      io_{shared.io},
      settings_{shared.settings},
      events_{shared.events},
      path_{shared.path},
      preparer_{options_, events_, io_, std::move(shared.room)},
      way_timer_{io_} {}

void ReceiveSession::begin(const pair::KnownPeer& device, const pair::DeviceKey* own) {
  is_busy_ = true;
  path_.account().signer = device == nullptr ? nullptr : own;
  path_.account().facts.device = device == nullptr ? "" : device->name;
  preparer_.begin_session(device);
  if (device != nullptr) events_.say("a paired device: " + device->name);
}

std::string ReceiveSession::what_is_kept() const {
  return path_.account().is_stream    ? "interrupted: nothing of the stream is kept"
         : path_.account().has_data() ? "interrupted: what arrived is kept"
         : offer_ != nullptr          ? "interrupted before anything arrived"
                                      : "interrupted: nothing was under way";
}

void ReceiveSession::consider(std::shared_ptr<const session::OfferedVolume> offer,
                              const crypto::CompareKey& key, session::Decide decide) {
  const bool is_first = offer->first_file == 0, is_again = is_first && offer_ != nullptr;
  offer_ = offer;
  if (is_first) begin_offer(is_again);
  if (!options_.is_hidden_allowed)
    if (auto visible = list::check_visible(*offer->manifest); !visible.has_value())
      return decide(visible.error());
  open_and_prepare(std::move(offer), key, std::move(decide), monotonic_now());
}

/// Where the way back is gone for now, as it may be while data flows, it is looked for again. A
/// session that has ended meanwhile has another offer, or none.
void ReceiveSession::open_and_prepare(std::shared_ptr<const session::OfferedVolume> offer,
                                      const crypto::CompareKey& key, session::Decide decide,
                                      Instant since) {
  if (offer->first_file == 0) {
    if (auto opened = open_before_files(offer->peer.address); !opened.has_value()) {
      const bool is_late = monotonic_now() - since > session::SessionLimits{}.silent;
      if (is_late || !session::is_way_missing(opened.error())) return decide(opened.error());
      way_timer_.expires_after(session::way_retry_pause);
      return way_timer_.async_wait([this, offer, key, decide = std::move(decide),
                                    since](const boost::system::error_code& error) {
        if (!error && offer == offer_) open_and_prepare(offer, key, decide, since);
      });
    }
    if (auto begun = path_.account().begin_receipt(); !begun.has_value())
      return decide(begun.error());
  }
  preparer_.start(std::move(offer), key, std::move(decide));
}

Result<void> ReceiveSession::open_port(const session::RouteInfo& route, const IpAddress& local) {
  const std::string& interface = fixed_interface_.empty() ? route.link.name : fixed_interface_;
  const auto open = [&] {
    return path_.open_port(interface, local, data_port_, offer_->has_fragments,
                           can_open_again() && is_small());
  };
  const auto opened = open();
  // Of several sessions only the first has a port of its own by right.
  if (opened || opened.error().errno_value != EADDRINUSE || data_port_ == 0 ||
      options_.sessions_max == 1)
    return opened;
  data_port_ = 0;
  return open();
}

/// Sockets and rings first, while the privileges are there; then the user's own rights, then the
/// folder.
Result<void> ReceiveSession::open_before_files(const IpAddress& peer) {
  ONEHOP_TRY(route, session::find_route(peer, settings_.interface));
  ONEHOP_TRYV(open_port(route, route.source));
  if (!options_.before_files) return success();
  if (const api::Error refused = options_.before_files()) return from_api(refused);
  return success();
}

Result<session::DataOpened> ReceiveSession::open_data(const session::PeerLink& link) {
  ONEHOP_TRY(route, session::find_route(link.peer.address, settings_.interface));
  ONEHOP_TRYV(open_port(route, link.local.address));
  path_.account().set_place(link.peer.address.text(), preparer_.folder());
  ONEHOP_TRY(opened, path_.opened(route));
  const auto& files = offer_->manifest->files;  // none is left where the only one has vanished
  opened.is_stream = options_.stream_fd >= 0 || (!files.empty() && files.front().is_piece());
  return std::move(opened);
}

Result<session::SessionRings> ReceiveSession::start_data(const session::DataPlan& plan) {
  ONEHOP_TRY(io, disk::make_file_io(settings_.file_io));
  std::unique_ptr<sink::SinkVolume> volume = preparer_.take();
  expect(*offer_, volume->is_stream());
  std::vector<std::uint64_t> sizes = volume->block_sizes();
  auto sink =
      std::make_unique<sink::Sink>(preparer_.destination(), std::move(io), sink::SinkOptions{});
  sink->add(std::move(volume), offer_->is_last);
  file_side_ = sink.get();
  return path_.start_receiving(plan, std::move(sink), std::move(sizes));
}

Result<Command> ReceiveSession::take_volume(const session::OfferedVolume& offer) {
  std::unique_ptr<sink::SinkVolume> volume = preparer_.take();
  expect(offer, volume->is_stream());
  const std::vector<std::uint64_t> sizes = volume->block_sizes();
  file_side_->add(std::move(volume), offer.is_last);
  return path_.add_files(offer.first_file, sizes);
}

/// The offer says that all of it is small.
bool ReceiveSession::is_small() const {
  if (!offer_->is_last) return offer_->known.is_all && offer_->known.bytes <= small_bytes_max;
  std::uint64_t left = small_bytes_max;
  for (const list::ManifestEntry& entry : offer_->manifest->files) {
    if (entry.is_piece() || entry.size > left) return false;
    left -= entry.size;
  }
  return true;
}

/// What was offered so far, and all that is said to come.
void ReceiveSession::expect(const session::OfferedVolume& offer, bool is_stream) {
  Account& account = path_.account();
  account.is_stream = is_stream;
  for (const list::ManifestEntry& entry : offer.manifest->files) {
    account.bytes_offered += entry.size;
    // One that is offered again was counted, and so was the stream of a later piece.
    const bool is_counted = offer.is_again || (entry.is_piece() && offer.first_file > 0);
    files_offered_ += entry.is_folder() || is_counted ? 0 : 1;
  }
  account.bytes_expected =
      offer.is_last ? account.bytes_offered : std::max(account.bytes_offered, offer.known.bytes);
  account.is_all_known = offer.is_last || offer.known.is_all;
  account.files_expected =
      offer.is_last ? files_offered_ : std::max(files_offered_, offer.known.files);
}

/// begin_offer forgets what the session before left, or this one (`is_again`) before a source
/// changed.
void ReceiveSession::begin_offer(bool is_again) {
  if (is_again)
    path_.account().on_restart();
  else
    files_offered_ = 0;
}

void ReceiveSession::on_session_end(const session::SessionEnd& end) {
  preparer_.end();
  way_timer_.cancel();
  if (end.is_replaced) {
    events_.say(end.error.message() + ": its transfer goes on there");
    path_.account().forget_session();
  } else {
    ended_ = path_.end(end);
  }
  offer_.reset();
  path_.account().signer = nullptr;
  if (options_.is_service) {  // it waits for hours, maybe, and others need the memory
    if (fixed_interface_.empty()) path_.close();
    (void)::malloc_trim(0);
  }
  if (!options_.is_once) path_.on_fact(session::Phase::connecting);  // it listens again
  is_busy_ = false;
}

}  // namespace onehop::transfer
