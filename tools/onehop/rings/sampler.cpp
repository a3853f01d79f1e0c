// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/rings/sampler.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace onehop::rings {

namespace {

constexpr std::size_t words_per_ring = 3;

const xdp_ring_offset& place_of(const xdp_mmap_offsets& layout, RingKind kind) {
  switch (kind) {
    case RingKind::rx: return layout.rx;
    case RingKind::tx: return layout.tx;
    case RingKind::fill: return layout.fr;
    case RingKind::completion: break;
  }
  return layout.cr;
}

iovec remote(std::uint64_t address, std::size_t bytes) {
  return {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
}

template <class F>
void each_ring(std::vector<Socket>& sockets, F&& use) {
  for (Socket& socket : sockets)
    for (auto& ring : socket.rings)
      if (ring) use(*ring);
}

}  // namespace

Result<Sampler> Sampler::open(pid_t pid) {
  Sampler self;
  self.pid_ = pid;
  self.process_ = Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U))};
  if (!self.process_.is_open()) return cannot_look(pid, "the rings", errno);
  ONEHOP_TRY(program, read_program(pid));
  if (program.rings.empty())
    return Error{ExitCode::peer_unreachable, fmt::format("look at the rings of process {}", pid),
                 fmt::format("{} has no AF_XDP ring mapped", program.name),
                 "'onehop rings' without a PID lists programs that have"};
  ONEHOP_TRY(layout, read_layout(pid, program.rings));
  self.layout_ = layout;
  ONEHOP_TRY(is_there, self.rescan());
  if (!is_there) return cannot_look(pid, "the rings", ESRCH);
  return self;
}

Result<bool> Sampler::rescan() {
  auto read = read_program(pid_);
  if (read.has_error() && read.error().code == ExitCode::peer_unreachable) return false;
  ONEHOP_TRYV(read);
  const Program& program = read.value();
  name_ = program.name;
  std::vector<std::uint64_t> inodes;
  for (const RingMapping& ring : program.rings)
    if (std::ranges::find(inodes, ring.inode) == inodes.end()) inodes.push_back(ring.inode);
  std::ranges::sort(inodes);
  FactsByInode facts = read_facts(pid_, inodes);
  std::vector<Socket> before = std::exchange(sockets_, {});
  for (const std::uint64_t inode : inodes)
    sockets_.push_back({.inode = inode, .facts = std::move(facts[inode]), .rings = {}});
  for (const RingMapping& mapping : program.rings) {
    Socket& socket = *std::ranges::find(sockets_, mapping.inode, &Socket::inode);
    const auto kind = static_cast<std::size_t>(mapping.kind);
    auto& ring = socket.rings[kind].emplace(Ring{.mapping = mapping, .use = {}, .all_held = {}});
    const auto old = std::ranges::find(before, mapping.inode, &Socket::inode);
    if (old != before.end() && old->rings[kind] && old->rings[kind]->mapping == mapping) {
      ring = *old->rings[kind];
    } else {
      ring.use.capacity = capacity_of(mapping.bytes, place_of(layout_, mapping.kind).desc,
                                      entry_bytes_of(mapping.kind),
                                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
    }
    if (const std::uint32_t entries = socket.facts.entries[kind]; entries != 0)
      ring.use.capacity = {entries, entries};
    else if (!ring.use.capacity.is_known())
      narrow(ring);
  }
  prepare();
  return true;
}

void Sampler::narrow(Ring& ring) const {
  const xdp_ring_offset& at = place_of(layout_, ring.mapping.kind);
  const std::size_t entry_bytes = entry_bytes_of(ring.mapping.kind);
  std::uint32_t producer = 0;
  std::vector<std::byte> slots(ring.use.capacity.most * entry_bytes);
  const std::array from{remote(ring.mapping.address + at.producer, sizeof producer),
                        remote(ring.mapping.address + at.desc, slots.size())};
  const std::array to{iovec{&producer, sizeof producer}, iovec{slots.data(), slots.size()}};
  if (::process_vm_readv(pid_, to.data(), to.size(), from.data(), from.size(), 0) ==
      static_cast<ssize_t>(sizeof producer + slots.size()))
    ring.use.capacity = narrowed(ring.use.capacity, slots, entry_bytes, producer);
}

void Sampler::prepare() {
  from_.clear();
  each_ring(sockets_, [&](const Ring& ring) {
    const xdp_ring_offset& at = place_of(layout_, ring.mapping.kind);
    // The kernel copies them in this order: see held_in().
    for (const std::uint64_t offset : {at.producer, at.consumer, at.flags})
      from_.push_back(remote(ring.mapping.address + offset, sizeof(std::uint32_t)));
  });
  words_.assign(from_.size(), 0);
}

Result<Sampler::Read> Sampler::read_indices() {
  constexpr std::size_t pieces_max = IOV_MAX / words_per_ring * words_per_ring;
  for (std::size_t done = 0; done < from_.size();) {
    const std::size_t count = std::min(from_.size() - done, pieces_max);
    const std::size_t bytes = count * sizeof(std::uint32_t);
    const iovec to{&words_[done], bytes};
    const ssize_t got = ::process_vm_readv(pid_, &to, 1, &from_[done], count, 0);
    if (got < 0 && errno == ESRCH) return Read::ended;
    if (got < 0 && errno != EFAULT) return cannot_look(pid_, "the memory", errno);
    if (got != static_cast<ssize_t>(bytes)) return Read::gone;
    done += count;
  }
  return Read::whole;
}

Result<bool> Sampler::sample() {
  constexpr int tries_max = 3;  // a program that opens and closes sockets may be ahead of us
  for (int tries = 0;; ++tries) {
    ONEHOP_TRY(read, read_indices());
    if (read == Read::ended) return false;
    if (read == Read::whole) break;
    if (tries == tries_max)
      return Error{ExitCode::io_unavailable, fmt::format("read the rings of process {}", pid_),
                   "the kernel gives no one else these pages",
                   "It takes Linux 6.3 or newer: before, rings were mapped as device memory",
                   EFAULT};
    ONEHOP_TRY(is_there, rescan());
    if (!is_there) return false;
  }
  ++samples_;
  std::size_t at = 0;
  each_ring(sockets_, [&](Ring& ring) {
    ring.use.add({words_[at], words_[at + 1], words_[at + 2]});
    at += words_per_ring;
  });
  return true;
}

void Sampler::begin_interval() noexcept {
  samples_ = 0;
  each_ring(sockets_, [](Ring& ring) {
    ring.all_held.merge(ring.use.held);
    ring.use.clear();
  });
}

}  // namespace onehop::rings
