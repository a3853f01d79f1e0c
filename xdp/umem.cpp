// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/umem.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/check.hpp"

namespace onehop::xdp {

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, bytes_);
}

Result<Umem> Umem::create(std::uint32_t chunks, std::uint32_t chunk_bytes) {
  ONEHOP_CHECK(chunks > 0);
  ONEHOP_CHECK(chunk_bytes >= 2048 && (chunk_bytes & (chunk_bytes - 1)) == 0);
  const std::size_t bytes = std::size_t{chunks} * chunk_bytes;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (address == MAP_FAILED)
    return errno_error(ExitCode::io_unavailable, "map " + std::to_string(bytes >> 20) + " MiB of frame memory");
  Umem self;
  self.mapping_ = Mapping{address, bytes};
  self.chunks_ = chunks;
  self.chunk_bytes_ = chunk_bytes;
  return self;
}

}  // namespace onehop::xdp
