// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/loop_end.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>

#include "control/session/channel/listener.hpp"
#include "control/session/channel/path_follower.hpp"
#include "control/session/send_session.hpp"
#include "control/transfer/data_path.hpp"
#include "control/transfer/port/dpdk_host.hpp"
#include "control/transfer/settings.hpp"
#include "engine/list/scan_arguments.hpp"
#include "engine/sink/sink.hpp"
#include "engine/source/source.hpp"
#include "tools/labs/bench/parts/memory_sink.hpp"
#include "tools/labs/bench/parts/memory_source.hpp"

namespace onehop::bench {

namespace {

/// End: what both hosts tell the measuring process.
class End {
 public:
  End(boost::asio::io_context& io, transfer::DataPath& path, Board& board, bool is_sending,
      bool is_held)
      : path_{path},
        board_{board},
        is_sending_{is_sending},
        is_held_{is_held},
        signals_{io, SIGUSR1} {
    listen();
  }
  /// The file's Report comes while all threads are there, so this is when they can be read. A
  /// receiving end that is measured together with its sender goes on: its message that the file is
  /// done is still to be written, and the sender's answer to it does not come before the sender is
  /// released.
  void on_fact(const session::SessionFact& fact) {
    const auto* event = std::get_if<Event>(&fact);
    if (event != nullptr && event->kind == EventKind::first_data) {
      path_.account().learn(fact);
      board_.first_data_ns = event->at.time_since_epoch().count();
      board_.state.store(EndState::flowing, std::memory_order_release);
    }
    if (!std::holds_alternative<session::Report>(fact)) return;
    post_moved();
    board_.state.store(EndState::done, std::memory_order_release);
    if (is_held_) wait_release(board_);
  }
  void on_started(const transfer::Settings& options, std::string_view io_name) {
    const PortInfo info = path_.port().info();
    write_text(board_.io_used, info.io);
    write_text(board_.io_mode, info.mode);
    write_text(board_.aead, path_.account().facts.aead);
    write_text(board_.law, options.law);
    write_text(board_.file_io, io_name);
    board_.frame_bytes = static_cast<std::uint32_t>(path_.account().facts.frame_bytes);
  }
  void stop() { signals_.cancel(); }

 private:
  void listen() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      const std::uint32_t asked = board_.asked.load(std::memory_order_acquire);
      post_moved();
      board_.answered.store(asked, std::memory_order_release);
      listen();
    });
  }
  void post_moved() {
    const PathReport report = path_.links().report.load();
    const DataPathCounters& counters = report.counters;
    Moved& moved = board_.moved;
    moved.bytes = is_sending_ ? counters.data_bytes_sent_total - counters.retransmitted_bytes_total
                              : static_cast<std::uint64_t>(report.sent_total.count);
    moved.frames = is_sending_ ? counters.frames_sent_total : counters.frames_received_total;
    moved.frames_lost = report.packets_lost_total;
    moved.wakeups = counters.wakeups_total;
    moved.engine_syscalls = counters.syscalls_total;
    post_usage(moved);
  }

  transfer::DataPath& path_;
  Board& board_;
  const bool is_sending_, is_held_;
  boost::asio::signal_set signals_;
};

class BenchSender final : public session::SendHost {
 public:
  BenchSender(const LoopSpec& spec, transfer::DataPath& path, End& end)
      : spec_{spec}, path_{path}, end_{end} {}

  Result<void> open_source() {
    if (spec_.is_source_file) {
      ONEHOP_TRY(found, list::check_arguments(std::vector<std::string>{spec_.source_path}));
      files_ = std::move(found.named);
      *manifest_ = files_.manifest;
    } else {
      manifest_->files = {{.name = "onehop-bench", .size = spec_.bytes, .mode = 0600}};
    }
    path_.account().bytes_expected = list::total_bytes(*manifest_);
    return success();
  }
  void next_volume(session::TakeVolume take) override { take(list::Volume{manifest_, true}); }
  session::KnownTree known() override {
    return {manifest_->files.size(), list::total_bytes(*manifest_), true};
  }
  Result<std::shared_ptr<const list::Manifest>> offer_again(
      const std::vector<session::Unsettled>&) override {
    return Error{ExitCode::local_file_error, "bench loop",
                 "the source file changed while it was sent"};
  }
  Result<session::DataOpened> open_data(const session::PeerLink& link) override {
    ONEHOP_TRY(route, session::find_route(link.peer.address, spec_.common.interface));
    ONEHOP_TRYV(path_.open_port(route.link.name, link.local.address, 0, false));
    return path_.opened(route);
  }
  void on_accepted(const session::Accepted&) override {}
  Result<session::SessionRings> start_data(const session::DataPlan& plan) override {
    ONEHOP_TRY(source, make_source());
    const std::string_view io_name = source->io_name();
    ONEHOP_TRY(rings, path_.start_sending(plan, std::move(source)));
    end_.on_started(spec_.common, io_name);
    return rings;
  }
  void stop_data() noexcept override { path_.stop(); }
  void on_fact(const session::SessionFact& fact) override { end_.on_fact(fact); }

 private:
  Result<std::unique_ptr<disk::FileWorker>> make_source() {
    if (!spec_.is_source_file)
      return std::unique_ptr<disk::FileWorker>{std::make_unique<MemorySource>(
          *manifest_, MemorySourceOptions{.digest_kind = spec_.digest})};
    ONEHOP_TRY(io, disk::make_file_io(spec_.common.file_io));
    auto source = std::make_unique<source::Source>(
        source::SourceOptions{.digest_kind = *spec_.digest}, std::move(io));
    source::SourceVolume all;
    *all.files = std::move(files_);
    all.is_last = true;
    source->add(std::move(all));
    return std::unique_ptr<disk::FileWorker>{std::move(source)};
  }

  const LoopSpec& spec_;
  transfer::DataPath& path_;
  End& end_;
  std::shared_ptr<list::Manifest> manifest_ = std::make_shared<list::Manifest>();
  list::SourceFiles files_;
};

class BenchReceiver final : public session::RecvHost {
 public:
  BenchReceiver(const LoopSpec& spec, transfer::DataPath& path, End& end, Board& board)
      : spec_{spec}, path_{path}, end_{end}, board_{board} {}

  void on_listening(const Endpoint&) override {
    board_.state.store(EndState::ready, std::memory_order_release);
  }
  void consider(std::shared_ptr<const session::OfferedVolume> offer, const crypto::CompareKey&,
                session::Decide decide) override {
    offer_ = offer;
    if (auto made = make_sink(offer); made.has_error()) return decide(made.error());
    path_.account().bytes_expected = list::total_bytes(*offer->manifest);
    decide(list::Answer{.actions = std::vector<session::FileAction>(offer->manifest->files.size(),
                                                                    session::FileAction::send)});
  }
  Result<session::DataOpened> open_data(const session::PeerLink& link) override {
    ONEHOP_TRY(route, session::find_route(link.peer.address, spec_.common.interface));
    ONEHOP_TRYV(path_.open_port(route.link.name, link.local.address, spec_.port, false));
    return path_.opened(route);
  }
  Result<session::SessionRings> start_data(const session::DataPlan& plan) override {
    std::vector<std::uint64_t> sizes = std::move(sizes_);
    const std::string_view io_name = sink_->io_name();
    ONEHOP_TRY(rings, path_.start_receiving(plan, std::move(sink_), std::move(sizes)));
    end_.on_started(spec_.common, io_name);
    return rings;
  }
  void stop_data() noexcept override { path_.stop(); }
  void on_fact(const session::SessionFact& fact) override { end_.on_fact(fact); }
  Result<Command> take_volume(const session::OfferedVolume&) override {
    return Error{ExitCode::internal_error, "bench loop", "it has one file"};
  }
  session::Arrival arrival() const override { return path_.arrival(); }

 private:
  Result<void> make_sink(const std::shared_ptr<const session::OfferedVolume>& offer) {
    sizes_.clear();
    if (!spec_.is_sink_file) {
      for (const list::ManifestEntry& entry : offer->manifest->files) sizes_.push_back(entry.size);
      sink_ = std::make_unique<MemorySink>(
          *offer->manifest,
          MemorySinkOptions{.digest_kind =
                                spec_.digest ? std::optional{offer->digest} : std::nullopt});
      return success();
    }
    ONEHOP_TRY(io, disk::make_file_io(spec_.common.file_io));
    ONEHOP_TRY(destination, sink::Destination::open(
                                {.folder = spec_.sink_folder, .digest_kind = offer->digest}));
    sink::SinkVolumeOptions options;
    options.on_exist = sink::OnExist::overwrite;
    ONEHOP_TRY(all, sink::SinkVolume::prepare(destination, offer, std::move(options)));
    sizes_ = all->block_sizes();
    auto sink =
        std::make_unique<sink::Sink>(std::move(destination), std::move(io), sink::SinkOptions{});
    sink->add(std::move(all), true);
    sink_ = std::move(sink);
    return success();
  }

  const LoopSpec& spec_;
  transfer::DataPath& path_;
  End& end_;
  Board& board_;
  std::shared_ptr<const session::OfferedVolume> offer_;
  std::unique_ptr<disk::FileWorker> sink_;
  std::vector<std::uint64_t> sizes_;  // for the engine
};

int end_with(const Result<session::SessionEnd>& ended, Board& board) {
  const Error* error = ended.has_error()                      ? &ended.error()
                       : ended.value().code != ExitCode::done ? &ended.value().error
                                                              : nullptr;
  if (error == nullptr) return 0;
  post_error(board, *error);
  return static_cast<int>(error->code);
}

void warn(const api::Event& event) {
  if (const auto* notice = std::get_if<api::Notice>(&event);
      notice != nullptr && notice->is_warning)
    std::fprintf(stderr, "onehop bench: %s\n", notice->text.c_str());
}

Result<session::SessionEnd> send(const LoopSpec& spec, Board& board) {
  const transfer::Events events{&warn};
  boost::asio::io_context io;
  transfer::DataPath path{io, spec.common, events, api::Role::sending};
  End end{io, path, board, true, true};
  BenchSender host{spec, path, end};
  ONEHOP_TRYV(host.open_source());
  ONEHOP_TRY(code, session::PairingCode::from_text(spec.code));
  session::SendOptions options;
  options.host = spec.address;
  options.port = spec.port;
  options.digest = spec.digest.value_or(crypto::DigestKind::xxh3);
  options.interface = spec.common.interface;
  const auto session = std::make_shared<session::SendSession>(io, options, code, host);
  session::SessionEnd ended;
  session->start([&](const session::SessionEnd& how) {
    ended = how;
    end.stop();
  });
  io.run();
  return ended;
}

/// A link that DPDK owns is there before the sender comes to it: it may be the receiving end that
/// makes it.
Result<void> open_dpdk_early(const LoopSpec& spec, transfer::DataPath& path) {
  if (spec.common.io != "dpdk") return success();
  ONEHOP_TRY(interface, transfer::kernel_interface_of(spec.common));
  if (interface.empty()) {
    ONEHOP_TRYV(path.open_dpdk({}));
  }
  return success();
}

Result<session::SessionEnd> receive(const LoopSpec& spec, Board& board) {
  const transfer::Events events{&warn};
  boost::asio::io_context io;
  transfer::DataPath path{io, spec.common, events, api::Role::receiving};
  End end{io, path, board, false, !spec.is_sender_held};
  ONEHOP_TRYV(open_dpdk_early(spec, path));
  ONEHOP_TRY(code, session::PairingCode::from_text(spec.code));
  session::RecvOptions options;
  options.address = spec.address;
  options.port = spec.port;
  options.is_once = true;
  options.interface = spec.common.interface;
  BenchReceiver host{spec, path, end, board};
  const auto server = session::make_recv_server(io, options, code, host);
  session::SessionEnd ended;
  ONEHOP_TRYV(server->start([&](const session::SessionEnd& how) {
    ended = how;
    end.stop();
  }));
  io.run();
  return ended;
}

}  // namespace

int run_loop_sender(const LoopSpec& spec, Board& board) {
  return end_with(send(spec, board), board);
}
int run_loop_receiver(const LoopSpec& spec, Board& board) {
  return end_with(receive(spec, board), board);
}

}  // namespace onehop::bench
