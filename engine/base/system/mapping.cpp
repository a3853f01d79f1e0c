// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/mapping.hpp"

#include <sys/mman.h>

namespace onehop {

namespace {
constexpr int madv_populate_write = 23;  // older headers lack the name
}  // namespace

Result<Mapping> Mapping::zeroed(std::size_t bytes) {
  void* address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    const std::size_t mib = bytes >> 20, kib = bytes >> 10;
    return errno_error(ExitCode::io_unavailable,
                       "map " + std::to_string(mib > 0 ? mib : kib) +
                           (mib > 0 ? " MiB of memory" : " KiB of memory"));
  }
  Mapping self;
  self.memory_ = {static_cast<std::byte*>(address), Unmap{bytes}};
  return self;
}

Result<Mapping> Mapping::frame_memory(std::size_t bytes, Pages pages) {
  Result<Mapping> mapped = zeroed(bytes);
  if (mapped.has_error()) return mapped;
  (void)::madvise(mapped.value().data(), bytes, MADV_HUGEPAGE);
  if (pages == Pages::now) mapped.value().make_present(0, bytes);
  return mapped;
}

void Mapping::make_present(std::size_t offset, std::size_t bytes) const noexcept {
  (void)::madvise(data() + offset, bytes, madv_populate_write);
}

void Mapping::Unmap::operator()(std::byte* address) const noexcept { ::munmap(address, bytes); }

}  // namespace onehop
