// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/mapping.hpp"

#include <sys/mman.h>

namespace onehop {

namespace {
constexpr int madv_populate_write = 23;  // older headers lack the name
}  // namespace

Result<Mapping> Mapping::frame_memory(std::size_t bytes, Pages pages) {
  void* address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return errno_error(ExitCode::io_unavailable,
                       "map " + std::to_string(bytes >> 20) + " MiB of memory for frames");
  (void)::madvise(address, bytes, MADV_HUGEPAGE);
  if (pages == Pages::now) (void)::madvise(address, bytes, madv_populate_write);
  Mapping self;
  self.memory_ = {static_cast<std::byte*>(address), Unmap{bytes}};
  return self;
}

void Mapping::Unmap::operator()(std::byte* address) const noexcept { ::munmap(address, bytes); }

}  // namespace onehop
