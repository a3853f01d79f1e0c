// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/umem.hpp"

#include "engine/base/check.hpp"

namespace onehop::xdp {

Result<Umem> Umem::create(std::uint32_t chunks, std::uint32_t chunk_bytes) {
  ONEHOP_CHECK(chunks > 0);
  ONEHOP_CHECK(chunk_bytes >= 2048 && (chunk_bytes & (chunk_bytes - 1)) == 0);
  ONEHOP_TRY(mapping, Mapping::frame_memory(std::size_t{chunks} * chunk_bytes));
  Umem self;
  self.mapping_ = std::move(mapping);
  self.chunks_ = chunks;
  self.chunk_bytes_ = chunk_bytes;
  return self;
}

}  // namespace onehop::xdp
