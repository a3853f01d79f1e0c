// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DataPath, the start of a session's data path: law, rate, file and engine threads, for blocks of
// either direction.
#include <fmt/format.h>

#include "control/transfer/data_path.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/run/receiver_loop.hpp"
#include "engine/run/sender_loop.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::transfer {

source::SourceOptions DataPath::source_options(const session::DataPlan& plan) const {
  return {disk::sender_slots, plan.context.digest, plan.compare_key,
          choice<disk::DirectIo>("--direct-io", settings_.direct_io)};
}

Result<session::SessionRings> DataPath::start_sending(const session::DataPlan& plan,
                                                      std::unique_ptr<disk::FileWorker> worker) {
  ONEHOP_TRYV(start_control(plan));
  run::SenderLoopConfig config;
  config.frame_bytes = plan.frame_body_max_bytes + wire::overhead_bytes;
  config.sender.block_slots = disk::sender_slots;
  account_.facts.block_pool_bytes = disk::sender_slots * std::int64_t{block_bytes};
  config.sender.is_repair_lazy = plan.is_repair_lazy;
  ONEHOP_TRY(made, random_seed());
  config.sender.skip_seed = std::move(made);
  return start_threads(port_->make_sender(keys_of(plan), config, links_->for_engine()),
                       std::move(worker));
}

Result<session::SessionRings> DataPath::start_receiving(const session::DataPlan& plan,
                                                        std::unique_ptr<disk::FileWorker> worker,
                                                        std::vector<std::uint64_t> sizes) {
  ONEHOP_TRYV(start_control(plan));
  file_sizes_ = std::move(sizes);
  run::ReceiverLoopConfig config;
  config.frame_bytes = account_.facts.frame_bytes;
  config.receiver.block_slots = disk::receiver_slots;
  account_.facts.block_pool_bytes = disk::receiver_slots * std::int64_t{block_bytes};
  config.receiver.is_repair_lazy = plan.is_repair_lazy;
  offer({});
  config.rate_offer = &links_->rate_offer;
  config.receiver.file_sizes = file_sizes_;
  ONEHOP_TRY(seed, random_seed());
  config.challenge_seed = seed;
  return start_threads(port_->make_receiver(keys_of(plan), config, links_->for_engine()),
                       std::move(worker));
}

Command DataPath::add_files(std::uint32_t first_file, std::span<const std::uint64_t> sizes) {
  while (!volumes_.empty() && volumes_.front()->is_released()) volumes_.pop_front();
  volumes_.push_back(std::make_unique<protocol::FileVolume>(first_file, sizes));
  return {.kind = CommandKind::add_files, .volume = volumes_.back().get()};
}

run::SessionKeys DataPath::keys_of(const session::DataPlan& plan) const {
  run::SessionKeys keys = run::session_keys(plan.secret, account_.is_sending());
  keys.key_interval_packets = plan.context.key_interval;
  keys.backend = backend_of(plan);
  return keys;
}

crypto::AeadBackend DataPath::backend_of(const session::DataPlan& plan) const {
  return plan.context.aead == crypto::aead_chacha20_poly1305 ? crypto::AeadBackend::chacha20
                                                             : settings_.aead;
}

Result<void> DataPath::start_control(const session::DataPlan& plan) {
  ONEHOP_TRYV(port_->connect(plan.peer));
  peer_ = plan.peer;
  path_ = plan.path;
  const bool is_sending = account_.is_sending();
  api::End& facts = account_.facts;
  facts.frame_bytes = plan.has_fragments ? wire::datagram_bytes_max
                                         : plan.frame_body_max_bytes + wire::overhead_bytes;
  facts.fragments = plan.has_fragments ? api::Fragments::on : api::Fragments::off;
  facts.aead = crypto::name(backend_of(plan));
  facts.key_exchange = plan.key_exchange;
  facts.digest = crypto::digest_name(plan.context.digest);  // the sender's choice, at both ends
  ONEHOP_TRY(limits, limits_on(plan.path.ifindex));
  links_->limits.store(limits);
  link_.ifindex = plan.path.ifindex;
  facts.repair = plan.is_repair_lazy ? "lazy" : "eager";
  law::LawOptions options = law_options(settings_);
  options.is_repair_lazy = plan.is_repair_lazy;
  if (is_sending) account_.set_start(plan.peer.address.text(), options.params.safe_range);
  ONEHOP_TRY(made, law::make_law(options));
  law_ = std::move(made);
  facts.law = law_->name();
  if (is_sending && has_kernel_link()) {
    ONEHOP_TRYV(open_link_sources(plan.path));
  }
  ONEHOP_TRYV(start_trace(plan));
  rate_ = std::make_unique<rate::RateLoop>(*law_, links_->for_rate(), trace_ ? &*trace_ : nullptr);
  facts.peer = plan.peer.address.text();
  rate_->set_source(link_.watch ? &*link_.watch : nullptr);
  if (is_sending) {
    ONEHOP_TRY(started, rate::start_rate_thread(*rate_));
    rate_thread_ = std::move(started);
  }
  return success();
}

Result<void> DataPath::start_trace(const session::DataPlan& plan) {
  if (settings_.trace_file.empty() || trace_) return success();
  const api::End& facts = account_.facts;
  const std::size_t payload = wire::frame_payload_bytes(plan.frame_body_max_bytes, block_bytes);
  const std::size_t wire =
      payload + wire::overhead_bytes + static_cast<std::size_t>(port_->info().wire_overhead.count);
  const std::string config = fmt::format(
      "{} law {}{} target {} bounds {} io {} frame {} payload {} wire {} link {}",
      name_of(facts.role), settings_.law, settings_.has_qcut ? "+qcut" : "", settings_.target,
      settings_.bounds, facts.io_used, facts.frame_bytes, payload, wire, facts.link_source);
  ONEHOP_TRY(trace, rate::TraceWriter::open(settings_.trace_file,
                                            {settings_.command_line, ONEHOP_VERSION, config}));
  trace_ = std::move(trace);
  return success();
}

Result<session::SessionRings> DataPath::start_threads(std::unique_ptr<Engine> engine,
                                                      std::unique_ptr<disk::FileWorker> worker) {
  account_.facts.file_io = worker->io_name();
  file_thread_ = std::make_unique<disk::FileThread>(std::move(worker), links_->file);
  ONEHOP_TRYV(file_thread_->start());
  ONEHOP_TRY(core, choose_core(settings_.core));
  engine_ = std::move(engine);
  ONEHOP_TRYV(engine_->start({.poll = choice<run::Poll>("--poll", settings_.poll), .core = core}));
  tick();
  return session::SessionRings{&links_->commands, &links_->events, &links_->file};
}

}  // namespace onehop::transfer
