// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Job, the start of a session's data path: loop, control, file and engine threads, whoever makes or takes the blocks.
#include "engine/file/block_pool.hpp"
#include "engine/wire/frame.hpp"
#include "tools/onehop/job.hpp"
#include "tools/onehop/set_up.hpp"

namespace onehop::tool {

Result<plane::EngineRings> Job::start_sending(const plane::DataPlan& plan, std::unique_ptr<file::FileWorker> worker) {
  sockaddr_storage peer{};
  (void)plan.peer.to_sockaddr(peer);
  ONEHOP_TRYV(port_->connect(peer));
  ONEHOP_TRYV(start_control(plan, true));
  run::SenderLoopConfig config;
  config.frame_bytes = plan.frame_body_max_bytes + wire::overhead_bytes;
  config.sender.body_bytes_max = plan.frame_body_max_bytes;
  // A session that starts once more, for a file that changed, does not go back to fragments once they were given up.
  if (plan.has_fragments && port_->info().mode == "fragments") config.fragmented_bytes = wire::datagram_bytes_max;
  config.sender.block_slots = file::sender_slots;
  config.sender.is_repair_lazy = plan.is_repair_lazy;
  ONEHOP_TRY(made, random_seed());
  config.sender.skip_seed = std::move(made);
  auto engine = port_->make_sender(keys_of(plan, true), config, links_->for_engine());
  (void)links_->commands.push({.kind = CommandKind::path_update, .path = plan.path});
  ONEHOP_TRYV(set_file_thread(std::move(worker)));
  ONEHOP_TRYV(start_engine(std::move(engine)));
  return plane::EngineRings{&links_->commands, &links_->events};
}

Result<plane::EngineRings> Job::start_receiving(const plane::DataPlan& plan, std::unique_ptr<file::FileWorker> worker,
                                                std::vector<std::uint64_t> sizes) {
  sockaddr_storage peer{};
  (void)plan.peer.to_sockaddr(peer);
  ONEHOP_TRYV(port_->connect(peer));
  ONEHOP_TRYV(start_control(plan, false));
  file_sizes_ = std::move(sizes);
  run::ReceiverLoopConfig config;
  config.frame_bytes = plan.has_fragments ? wire::datagram_bytes_max : plan.frame_body_max_bytes + wire::overhead_bytes;
  config.receiver.block_slots = file::receiver_slots;
  config.receiver.body_bytes_max = config.frame_bytes - wire::overhead_bytes;
  config.receiver.is_repair_lazy = plan.is_repair_lazy;
  config.receiver.rate_offer = links_->limits.load().rate_max;
  config.receiver.file_sizes = file_sizes_;
  auto engine = port_->make_receiver(keys_of(plan, false), config, links_->for_engine());
  (void)links_->commands.push({.kind = CommandKind::path_update, .path = plan.path});
  ONEHOP_TRYV(set_file_thread(std::move(worker)));
  ONEHOP_TRYV(start_engine(std::move(engine)));
  return plane::EngineRings{&links_->commands, &links_->events};
}

Result<void> Job::set_file_thread(std::unique_ptr<file::FileWorker> worker) {
  facts_.file_io = worker->io_name();
  file_thread_ = std::make_unique<file::FileThread>(std::move(worker), links_->file_to_engine, links_->engine_to_file);
  return file_thread_->start();
}

}  // namespace onehop::tool
