// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/bench/loop_end.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>

#include "control/plane/listener.hpp"
#include "control/plane/path_follower.hpp"
#include "control/plane/send_session.hpp"
#include "engine/file/memory_sink.hpp"
#include "engine/file/memory_source.hpp"
#include "engine/file/sink.hpp"
#include "engine/file/source.hpp"
#include "tools/onehop/dpdk_host.hpp"
#include "tools/onehop/job.hpp"
#include "tools/onehop/set_up.hpp"

namespace onehop::bench {

namespace {

/// End: what both hosts tell the measuring process.
class End {
 public:
  End(boost::asio::io_context& io, tool::Job& job, Board& board, bool is_sending, bool is_held)
      : job_{job}, board_{board}, is_sending_{is_sending}, is_held_{is_held}, signals_{io, SIGUSR1} {
    listen();
  }
  void on_first_data(Instant at) {
    job_.on_first_data(at);
    board_.first_data_ns = at.time_since_epoch().count();
    board_.state.store(EndState::flowing, std::memory_order_release);
  }
  /// on_file_done comes while all threads are there, so this is when they can be read. A receiving end that is measured
  /// together with its sender goes on: its message that the file is done is still to be written, and the sender's answer to it
  /// does not come before the sender is released.
  void on_file_done() {
    post_moved();
    board_.state.store(EndState::done, std::memory_order_release);
    if (is_held_) wait_release(board_);
  }
  void on_started(const tool::CommonOptions& options, std::string_view io_name) {
    const PortInfo info = job_.port().info();
    write_text(board_.io_used, info.io);
    write_text(board_.io_mode, info.mode);
    write_text(board_.aead, crypto::name(tool::aead_backend(options)));
    write_text(board_.law, options.law);
    write_text(board_.file_io, io_name);
    board_.frame_bytes = static_cast<std::uint32_t>(job_.frame_bytes());
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
    const PathReport report = job_.links().report.load();
    const DataPathCounters& counters = report.counters;
    Moved& moved = board_.moved;
    moved.bytes = is_sending_ ? counters.data_bytes_sent_total - counters.retransmitted_bytes_total : static_cast<std::uint64_t>(report.sent_total.count);
    moved.frames = is_sending_ ? counters.frames_sent_total : counters.frames_received_total;
    moved.frames_lost = report.packets_lost_total;
    moved.wakeups = counters.wakeups_total;
    moved.engine_syscalls = counters.syscalls_total;
    post_usage(moved);
  }

  tool::Job& job_;
  Board& board_;
  const bool is_sending_, is_held_;
  boost::asio::signal_set signals_;
};

class BenchSender final : public plane::SendHost {
 public:
  BenchSender(const LoopSpec& spec, tool::Job& job, End& end) : spec_{spec}, job_{job}, end_{end} {}

  Result<void> open_source() {
    if (spec_.is_source_file) {
      ONEHOP_TRY(files, file::open_source_files(std::vector<std::string>{spec_.source_path}));
      files_ = std::move(files);
      manifest_ = files_.manifest;
    } else {
      manifest_.files = {{.name = "onehop-bench", .size = spec_.bytes, .mode = 0600}};
    }
    job_.set_bytes_expected(file::total_bytes(manifest_));
    return success();
  }
  const file::Manifest& manifest() override { return manifest_; }
  Result<void> offer_again(const std::vector<bool>&) override {
    return Error{ExitCode::local_file_error, "bench loop", "the source file changed while it was sent"};
  }
  Result<plane::DataOpened> open_data(const plane::PeerLink& link) override {
    ONEHOP_TRY(route, plane::find_route(link.peer.address, spec_.common.interface));
    ONEHOP_TRYV(job_.open_port(route.link.name, link.local.address, 0, false));
    return job_.opened(route);
  }
  void on_accepted(const plane::Accepted&) override {}
  Result<plane::EngineRings> start_data(const plane::DataPlan& plan) override {
    ONEHOP_TRY(source, make_source());
    const std::string_view io_name = source->io_name();
    ONEHOP_TRY(rings, job_.start_sending(plan, std::move(source)));
    end_.on_started(spec_.common, io_name);
    return rings;
  }
  void stop_data() noexcept override { job_.stop(); }
  void on_event(const Event& event) override {
    if (event.kind == EventKind::first_data) end_.on_first_data(event.at);
  }
  void on_file_done(const plane::FileDone&) override { end_.on_file_done(); }

 private:
  Result<std::unique_ptr<file::FileWorker>> make_source() {
    if (!spec_.is_source_file)
      return std::unique_ptr<file::FileWorker>{std::make_unique<file::MemorySource>(manifest_, file::MemorySourceOptions{.digest_kind = spec_.digest})};
    ONEHOP_TRY(kind, tool::file_io_kind(spec_.common));
    ONEHOP_TRY(io, file::make_file_io(kind));
    file::SourceOptions options;
    options.digest_kind = *spec_.digest;
    return std::unique_ptr<file::FileWorker>{std::make_unique<file::Source>(std::move(files_), std::move(options), std::move(io))};
  }

  const LoopSpec& spec_;
  tool::Job& job_;
  End& end_;
  file::Manifest manifest_;
  file::SourceFiles files_;
};

class BenchReceiver final : public plane::RecvHost {
 public:
  BenchReceiver(const LoopSpec& spec, tool::Job& job, End& end, Board& board) : spec_{spec}, job_{job}, end_{end}, board_{board} {}

  void on_listening(const plane::Endpoint&) override { board_.state.store(EndState::ready, std::memory_order_release); }
  void consider(std::shared_ptr<const plane::OfferInfo> offer, plane::Decide decide) override {
    offer_ = offer;
    if (auto made = make_sink(*offer); made.has_error()) return decide(made.error());
    job_.set_bytes_expected(offer->total_bytes);
    decide(plane::Decision{.actions = std::vector<plane::FileAction>(offer->manifest.files.size(), plane::FileAction::send), .claims = {}});
  }
  Result<plane::DataOpened> open_data(const plane::PeerLink& link) override {
    ONEHOP_TRY(route, plane::find_route(link.peer.address, spec_.common.interface));
    ONEHOP_TRYV(job_.open_port(route.link.name, link.local.address, spec_.port, false));
    return job_.opened(route);
  }
  Result<plane::EngineRings> start_data(const plane::DataPlan& plan) override {
    std::vector<std::uint64_t> sizes;
    for (const file::ManifestEntry& entry : offer_->manifest.files) sizes.push_back(entry.size);
    const std::string_view io_name = sink_->io_name();
    ONEHOP_TRY(rings, job_.start_receiving(plan, std::move(sink_), std::move(sizes)));
    end_.on_started(spec_.common, io_name);
    return rings;
  }
  void stop_data() noexcept override { job_.stop(); }
  void on_event(const Event& event) override {
    if (event.kind == EventKind::first_data) end_.on_first_data(event.at);
  }
  void on_file_done(const plane::FileDone&) override { end_.on_file_done(); }
  plane::Arrival arrival() const override { return job_.arrival(); }

 private:
  Result<void> make_sink(const plane::OfferInfo& offer) {
    if (!spec_.is_sink_file) {
      sink_ = std::make_unique<file::MemorySink>(offer.manifest, file::MemorySinkOptions{.digest_kind = spec_.digest ? std::optional{offer.digest} : std::nullopt});
      return success();
    }
    ONEHOP_TRY(kind, tool::file_io_kind(spec_.common));
    ONEHOP_TRY(io, file::make_file_io(kind));
    file::SinkOptions options;
    options.folder = spec_.sink_folder;
    options.approved = offer.manifest_hash;
    options.on_exist = file::OnExist::overwrite;
    options.digest_kind = offer.digest;
    ONEHOP_TRY(sink, file::Sink::prepare(offer.manifest, std::move(options), std::move(io)));
    sink_ = std::move(sink);
    return success();
  }

  const LoopSpec& spec_;
  tool::Job& job_;
  End& end_;
  Board& board_;
  std::shared_ptr<const plane::OfferInfo> offer_;
  std::unique_ptr<file::FileWorker> sink_;
};

Result<plane::PairingKey> key_of(const LoopSpec& spec) {
  ONEHOP_TRY(code, plane::PairingCode::from_text(spec.code));
  return plane::stretch(code);
}

int end_with(const Result<plane::SessionEnd>& ended, Board& board) {
  const Error* error = ended.has_error() ? &ended.error() : ended.value().code != ExitCode::done ? &ended.value().error : nullptr;
  if (error == nullptr) return 0;
  post_error(board, *error);
  return static_cast<int>(error->code);
}

Result<plane::SessionEnd> send(const LoopSpec& spec, Board& board) {
  tool::Reporter reporter{spec.common, "bench"};
  boost::asio::io_context io;
  tool::Job job{io, spec.common, reporter, "send"};
  End end{io, job, board, true, true};
  BenchSender host{spec, job, end};
  ONEHOP_TRYV(host.open_source());
  ONEHOP_TRY(key, key_of(spec));
  plane::SendOptions options;
  options.host = spec.address;
  options.port = spec.port;
  options.digest = spec.digest.value_or(crypto::DigestKind::xxh3);
  options.interface = spec.common.interface;
  plane::SendSession session{io, options, key, host};
  plane::SessionEnd ended;
  session.start([&](const plane::SessionEnd& how) {
    ended = how;
    end.stop();
  });
  io.run();
  return ended;
}

/// A link that DPDK owns is there before the sender comes to it: it may be the receiving end that makes it.
Result<void> open_dpdk_early(const LoopSpec& spec, tool::Job& job) {
  if (spec.common.io != "dpdk") return success();
  ONEHOP_TRY(interface, tool::kernel_interface_of(spec.common));
  if (interface.empty()) { ONEHOP_TRYV(job.open_dpdk({})); }
  return success();
}

Result<plane::SessionEnd> receive(const LoopSpec& spec, Board& board) {
  tool::Reporter reporter{spec.common, "bench"};
  boost::asio::io_context io;
  tool::Job job{io, spec.common, reporter, "recv"};
  End end{io, job, board, false, !spec.is_sender_held};
  ONEHOP_TRYV(open_dpdk_early(spec, job));
  ONEHOP_TRY(key, key_of(spec));
  plane::RecvOptions options;
  options.address = spec.address;
  options.port = spec.port;
  options.is_once = true;
  options.interface = spec.common.interface;
  BenchReceiver host{spec, job, end, board};
  plane::RecvServer server{io, options, key, host};
  plane::SessionEnd ended;
  ONEHOP_TRYV(server.start([&](const plane::SessionEnd& how) {
    ended = how;
    end.stop();
  }));
  io.run();
  return ended;
}

}  // namespace

int run_loop_sender(const LoopSpec& spec, Board& board) { return end_with(send(spec, board), board); }
int run_loop_receiver(const LoopSpec& spec, Board& board) { return end_with(receive(spec, board), board); }

}  // namespace onehop::bench
