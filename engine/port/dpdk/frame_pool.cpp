// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/dpdk/frame_pool.hpp"

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_spinlock.h>

#include <atomic>
#include <cerrno>

namespace onehop::dpdk {

namespace {

constexpr const char* handler_name = "onehop_tally";

/// FrameMark lies in an mbuf's private area.
struct FrameMark {
  std::uint64_t wire_bytes;
};
static_assert(sizeof(FrameMark) % RTE_MBUF_PRIV_ALIGN == 0);

/// Stack: free frames, last in first out for the cache, and what came back. One writer at a time.
struct Stack {
  void** frames;
  std::uint32_t count;
  std::atomic<std::uint64_t> freed_bytes;
  std::atomic<std::uint64_t> freed_frames;
};

/// Shelf: the pool's free frames and the tally, in two parts. One thread owns the pool: it takes
/// and frees without a lock, because a locked instruction waits until every store before it is
/// seen, such as the bytes a driver has just copied. Others free into the shared part.
struct Shelf {
  std::atomic<const void*> owner;  // a thread's mark; written while no other thread uses the pool
  Stack own;
  rte_spinlock_t lock;  // of shared
  Stack shared;
  bool is_counting;  // not before the frames' private areas have been cleared
};

thread_local char thread_mark;

Shelf& shelf_of(const rte_mempool* pool) noexcept { return *static_cast<Shelf*>(pool->pool_data); }
FrameMark& mark_of(void* frame) noexcept {
  return *static_cast<FrameMark*>(rte_mbuf_to_priv(static_cast<rte_mbuf*>(frame)));
}
bool is_owner(const Shelf& shelf) noexcept {
  return shelf.owner.load(std::memory_order_relaxed) == &thread_mark;
}

int alloc_shelf(rte_mempool* pool) {
  const std::size_t stack_bytes = pool->size * sizeof(void*);
  auto* shelf = static_cast<Shelf*>(rte_zmalloc_socket(
      "onehop_shelf", sizeof(Shelf) + 2 * stack_bytes, RTE_CACHE_LINE_SIZE, pool->socket_id));
  if (shelf == nullptr) return -ENOMEM;
  rte_spinlock_init(&shelf->lock);
  shelf->own.frames = reinterpret_cast<void**>(shelf + 1);
  shelf->shared.frames = shelf->own.frames + pool->size;
  shelf->owner.store(&thread_mark, std::memory_order_relaxed);
  pool->pool_data = shelf;
  return 0;
}

void free_shelf(rte_mempool* pool) { rte_free(pool->pool_data); }

void put_on(Stack& stack, bool is_counting, void* const* frames, unsigned count) noexcept {
  std::uint64_t bytes = 0, marked = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (is_counting && mark_of(frames[i]).wire_bytes != 0) {
      bytes += mark_of(frames[i]).wire_bytes;
      marked += 1;
      mark_of(frames[i]).wire_bytes = 0;
    }
    stack.frames[stack.count++] = frames[i];
  }
  if (marked == 0) return;
  stack.freed_bytes.store(stack.freed_bytes.load(std::memory_order_relaxed) + bytes,
                          std::memory_order_relaxed);
  stack.freed_frames.store(stack.freed_frames.load(std::memory_order_relaxed) + marked,
                           std::memory_order_relaxed);
}

int put_frames(rte_mempool* pool, void* const* frames, unsigned count) {
  Shelf& shelf = shelf_of(pool);
  if (is_owner(shelf)) {
    put_on(shelf.own, shelf.is_counting, frames, count);
    return 0;
  }
  rte_spinlock_lock(&shelf.lock);
  put_on(shelf.shared, shelf.is_counting, frames, count);
  rte_spinlock_unlock(&shelf.lock);
  return 0;
}

int take_from(Stack& stack, void** frames, unsigned count) noexcept {
  if (stack.count < count) return -ENOBUFS;
  for (unsigned i = 0; i < count; ++i) frames[i] = stack.frames[--stack.count];
  return 0;
}

// The owner takes what others freed when its part has run out; others have only the shared one.
int take_frames(rte_mempool* pool, void** frames, unsigned count) {
  Shelf& shelf = shelf_of(pool);
  if (is_owner(shelf) && shelf.own.count >= count) return take_from(shelf.own, frames, count);
  rte_spinlock_lock(&shelf.lock);
  if (is_owner(shelf))
    while (shelf.shared.count > 0)
      shelf.own.frames[shelf.own.count++] = shelf.shared.frames[--shelf.shared.count];
  const int rc = take_from(is_owner(shelf) ? shelf.own : shelf.shared, frames, count);
  rte_spinlock_unlock(&shelf.lock);
  return rc;
}

unsigned count_frames(const rte_mempool* pool) {
  return shelf_of(pool).own.count + shelf_of(pool).shared.count;
}

Error pool_error(std::string attempt) {
  return errno_error(
      ExitCode::io_unavailable, std::move(attempt),
      "give EAL more memory (--eal \"... -m 512\"), or huge pages (sysctl -w vm.nr_hugepages=128)",
      rte_errno);
}

}  // namespace

Result<void> FramePool::register_handler() {
  static rte_mempool_ops handler = [] {
    rte_mempool_ops ops{};
    __builtin_strcpy(ops.name, handler_name);
    ops.alloc = alloc_shelf;
    ops.free = free_shelf;
    ops.enqueue = put_frames;
    ops.dequeue = take_frames;
    ops.get_count = count_frames;
    return ops;
  }();
  const int index = rte_mempool_register_ops(&handler);
  if (index >= 0 || index == -EEXIST) return success();
  return errno_error(ExitCode::internal_error, "register the frame pool with DPDK", {}, -index);
}

Result<FramePool> FramePool::make(const FramePoolConfig& config) {
  static std::atomic<unsigned> made{0};
  const std::string name = "onehop_frames_" + std::to_string(made++);
  const std::uint32_t room_bytes = config.room_bytes + RTE_PKTMBUF_HEADROOM;
  FramePool self;
  const int socket = config.numa_node < 0 ? SOCKET_ID_ANY : config.numa_node;
  // As rte_pktmbuf_pool_create_by_ops() does it, which takes no flags.
  const auto element_bytes =
      static_cast<unsigned>(sizeof(rte_mbuf) + sizeof(FrameMark) + room_bytes);
  self.pool_.reset(rte_mempool_create_empty(name.c_str(), config.frames, element_bytes, 0,
                                            sizeof(rte_pktmbuf_pool_private), socket,
                                            config.is_packed ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0));
  rte_pktmbuf_pool_private sizes{};
  sizes.mbuf_data_room_size = static_cast<std::uint16_t>(room_bytes);
  sizes.mbuf_priv_size = sizeof(FrameMark);
  bool is_made =
      self.pool_ && rte_mempool_set_ops_byname(self.pool_.get(), handler_name, nullptr) == 0;
  if (is_made) rte_pktmbuf_pool_init(self.pool_.get(), &sizes);
  is_made = is_made && rte_mempool_populate_default(self.pool_.get()) >= 0;
  if (is_made) rte_mempool_obj_iter(self.pool_.get(), rte_pktmbuf_init, nullptr);
  if (!is_made)
    return pool_error("make a pool of " + std::to_string(config.frames) + " DPDK frames");
  shelf_of(self.pool_.get()).is_counting = true;
  const rte_mempool& pool = *self.pool_;
  self.memory_ = Bytes{static_cast<std::int64_t>(pool.size) *
                       (pool.header_size + pool.elt_size + pool.trailer_size)};
  return self;
}

void FramePool::mark(rte_mbuf* frame, std::uint32_t wire_bytes) noexcept {
  mark_of(frame).wire_bytes = wire_bytes;
}

void FramePool::adopt() noexcept {
  Shelf& shelf = shelf_of(pool_.get());
  if (!is_owner(shelf)) shelf.owner.store(&thread_mark, std::memory_order_relaxed);
}

Bytes FramePool::freed_bytes() const noexcept {
  const Shelf& shelf = shelf_of(pool_.get());
  return Bytes{static_cast<std::int64_t>(shelf.own.freed_bytes.load(std::memory_order_relaxed) +
                                         shelf.shared.freed_bytes.load(std::memory_order_relaxed))};
}
std::uint64_t FramePool::freed_frames() const noexcept {
  const Shelf& shelf = shelf_of(pool_.get());
  return shelf.own.freed_frames.load(std::memory_order_relaxed) +
         shelf.shared.freed_frames.load(std::memory_order_relaxed);
}

void FramePool::Closer::operator()(rte_mempool* pool) const noexcept { rte_mempool_free(pool); }

}  // namespace onehop::dpdk
