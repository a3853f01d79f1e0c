// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/schedule.hpp"

#include <algorithm>

#include "tools/labs/stress/random.hpp"

namespace onehop::stress {

namespace {
constexpr std::array<std::string_view, faults> fault_words{"tiny-rings",
                                                           "umem-edge",
                                                           "sender-stall",
                                                           "receiver-stall",
                                                           "control-stall",
                                                           "jitter",
                                                           "drain-up",
                                                           "drain-down",
                                                           "disk-stall",
                                                           "disk-slow",
                                                           "completions-withheld",
                                                           "fill-starved",
                                                           "link-down",
                                                           "mtu",
                                                           "rebind",
                                                           "feedback-lost",
                                                           "loss",
                                                           "disorder",
                                                           "facts"};

// One schedule in seven has every fault, so that each pair of faults meets; the others have a third
// of them, so that single ones are not drowned by the rest.
constexpr std::uint64_t all_in = 7;
constexpr FaultSet faults_of_the_world_mask = (FaultSet{1} << faults_of_the_world) - 1;
constexpr std::int64_t rates_mbit[] = {10, 20, 20, 40, 40, 60, 80, 120};
// BlockRanges' 128 ranges hold a block of such frames in any order
constexpr std::size_t payload_least = 1172;

FaultSet draw_kinds(Random& random, FaultSet from) {
  if (random.below(all_in) == 0) return from;
  FaultSet kinds = 0;
  for (std::size_t i = 0; i < faults; ++i)
    if (random.below(3) == 0) kinds |= FaultSet{1} << i;
  kinds &= from;
  const FaultSet timed = from & ~faults_of_the_world_mask;
  while (timed != 0 && (kinds & timed) == 0)
    kinds |= timed & (FaultSet{1} << random.below(faults));  // at least one of them
  return kinds;
}

/// draw_tree draws volumes as those of a tree: most files are packed, and the last of a volume is
/// its pack.
std::vector<std::uint64_t> draw_tree(Random& random, std::uint64_t bytes, std::size_t volume) {
  std::vector<std::uint64_t> sizes;
  while (bytes > 0) {
    const bool is_pack = sizes.size() % volume == volume - 1;
    const bool is_packed = !is_pack && random.below(4) != 0;
    const std::uint64_t size =
        std::min<std::uint64_t>(bytes, random.below(is_pack ? 600'000 : 150'000));
    sizes.push_back(is_packed ? file_without_blocks : size);
    bytes -= is_packed ? 0 : size;
  }
  return sizes;
}

/// The last file is the one that the source keeps until the faults are over: the transfer outlasts
/// them.
void draw_files(Random& random, std::uint64_t bytes, scenario::WorldConfig& world) {
  std::vector<std::uint64_t>& sizes = world.file_sizes;
  sizes.clear();
  switch (random.below(4)) {
    case 0:  // many small ones: a block each
      while (bytes > 0) {
        sizes.push_back(std::min<std::uint64_t>(bytes, random.below(60'000)));
        bytes -= sizes.back();
      }
      sizes.push_back(0);
      break;
    case 1: sizes = {bytes / 3, 0, bytes - bytes / 3}; break;
    case 2:
      world.volume_files = 2 + random.below(30);
      sizes = draw_tree(random, bytes, world.volume_files);
      break;
    default: sizes = {bytes}; break;
  }
  sizes.push_back(1 + random.below(60'000));
}

scenario::RingShape draw_rings(Random& random, FaultSet kinds) {
  scenario::RingShape shape;
  const bool is_tiny = (kinds & bit_of(Fault::tiny_rings)) != 0;
  shape.tx_frames = is_tiny ? 8U << random.below(3) : 64U << random.below(2);
  shape.rx_frames = is_tiny ? 32U << random.below(2) : 128U << random.below(2);
  if ((kinds & bit_of(Fault::umem_edge)) != 0) {
    shape.is_at_edge = true;
    shape.index_start = 0U - static_cast<std::uint32_t>(1 + random.below(64));
  }
  shape.chunk_bytes = random.below(3) == 0
                          ? 512U << random.below(2)
                          : 2048U;  // a third of them have frames in several chunks
  return shape;
}

void draw_world(Random& random, FaultSet kinds, const DrawOptions& options, Schedule& out) {
  scenario::WorldConfig& world = out.world;
  const BytesPerSecond rate = mbit_per_s(rates_mbit[random.below(std::size(rates_mbit))]);
  const bool is_tiny = (kinds & bit_of(Fault::tiny_rings)) != 0;
  world.seed = random.next();
  world.frame_bytes = payload_least + wire::overhead_bytes +
                      random.below(1472 - payload_least - wire::overhead_bytes + 1);
  world.forward.rate = world.backward.rate = rate;
  world.forward.delay = world.backward.delay = Nanos{
      static_cast<Nanos::rep>(20'000 + random.below(random.below(4) == 0 ? 3'000'000 : 400'000))};
  const std::int64_t queue_ms = static_cast<std::int64_t>(1 + random.below(40));
  world.forward.queue_capacity = std::max((rate * (queue_ms * 1ms)), Bytes{8 * 1514});
  world.forward.is_drop_tail = random.below(10) == 0;
  world.backward.queue_capacity = kib(64);
  world.forward.ring_frames = world.backward.ring_frames =
      is_tiny ? 32 + random.below(64) : 128 + random.below(512);
  const std::uint64_t span_bytes = static_cast<std::uint64_t>((rate * options.span).count);
  draw_files(random, span_bytes / 2 + random.below(span_bytes), world);
  world.last_block_at = Instant{} + options.span;
  world.sender_slots = 2 + random.below(8);
  world.receiver_slots = 2 + random.below(8);
  world.tick = 0ns;
  world.is_repair_lazy = random.below(4) == 0;
  world.has_loss_mask = true;
  world.is_path_proof_skipped = random.below(4) != 0;
  world.has_qcut = random.below(3) == 0;
  world.law =
      options.law.empty() ? std::string{law_names[random.below(law_names.size())]} : options.law;
  if (world.law == "fixed")
    world.law.append(1, ':').append(
        std::to_string(bps(rate) * static_cast<std::int64_t>(1 + random.below(6)) / 4));
  world.link_frames_max = 1024;
  world.in_flight_max = 512U << random.below(2);
  world.gap_ranges_max = 64 + random.below(256);
  world.links.blocks = is_tiny ? 1 + random.below(4) : 16;
  world.links.commands = world.links.events = is_tiny ? 1 + random.below(4) : 64;
  bool has_rings = random.below(2) == 0;
  for (std::size_t i = 0; i < faults; ++i)
    has_rings = has_rings || ((kinds >> i & 1) != 0 && needs_rings(static_cast<Fault>(i)));
  if (has_rings) world.rings = draw_rings(random, kinds);
  out.has_facts = random.below(3) == 0;
}

/// Most are short, so that what they do to each other is seen; a few last longer than the law's
/// memory.
Nanos draw_span(Random& random) {
  const auto us =
      static_cast<std::int64_t>(20 + random.below(random.below(16) == 0 ? 15'000 : 800));
  return us * 1us;
}

}  // namespace

std::string_view to_string(Fault fault) noexcept {
  return fault_words[static_cast<std::size_t>(fault)];
}

std::optional<Fault> fault_of(std::string_view name) noexcept {
  const auto* const found = std::find(fault_words.begin(), fault_words.end(), name);
  if (found == fault_words.end()) return std::nullopt;
  return static_cast<Fault>(found - fault_words.begin());
}

std::string fault_names(FaultSet kinds) {
  std::string text;
  for (std::size_t i = 0; i < faults; ++i)
    if ((kinds >> i & 1) != 0) text.append(text.empty() ? "" : ", ").append(fault_words[i]);
  return text;
}

void apply_world_faults(Schedule& schedule) {
  scenario::WorldConfig& world = schedule.world;
  for (std::size_t i = 0; i < faults; ++i)
    if ((schedule.kinds >> i & 1) != 0 && needs_rings(static_cast<Fault>(i)) && !world.rings)
      world.rings.emplace();
  if ((schedule.kinds & bit_of(Fault::tiny_rings)) != 0)
    world.links.blocks = world.links.commands = world.links.events = 2;
  if ((schedule.kinds & bit_of(Fault::umem_edge)) != 0) {
    world.rings->is_at_edge = true;
    world.rings->index_start = ~0U;
  }
}

bool needs_rings(Fault fault) noexcept {
  return fault == Fault::umem_edge || fault == Fault::completions_withheld ||
         fault == Fault::fill_starved || fault == Fault::rebind;
}

Schedule draw_schedule(std::uint64_t seed, std::uint64_t index, const DrawOptions& options) {
  Random random{seed, index};
  Schedule out{.seed = seed, .index = index, .span = options.span};
  out.limit = options.span + limit_after;
  out.kinds = draw_kinds(random, options.kinds);
  draw_world(random, out.kinds, options, out);
  std::array<Fault, faults> timed{};
  std::size_t kinds = 0;
  for (std::size_t i = faults_of_the_world; i < faults; ++i)
    if ((out.kinds >> i & 1) != 0) timed[kinds++] = static_cast<Fault>(i);
  if (kinds == 0) return out;
  out.events.reserve(options.events);
  for (std::size_t i = 0; i < options.events; ++i) {
    // Each kind once, then as it falls.
    const Fault fault = timed[i < kinds ? i : random.below(kinds)];
    const auto at = Nanos{
        static_cast<Nanos::rep>(random.below(static_cast<std::uint64_t>(options.span.count())))};
    out.events.push_back({.at = at, .span = draw_span(random), .fault = fault});
  }
  std::sort(out.events.begin(), out.events.end(),
            [](const FaultEvent& a, const FaultEvent& b) { return a.at < b.at; });
  return out;
}

}  // namespace onehop::stress
