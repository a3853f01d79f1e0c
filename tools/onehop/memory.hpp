// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What becomes of the program where the system refuses memory that only exceptions could tell of.
#pragma once

namespace onehop::tool {

/// end_where_memory_is_refused makes the program end with io_unavailable and a line that says why,
/// wherever operator new or OpenSSL is refused memory. Call it first in main: OpenSSL takes no
/// allocator once it has allocated.
/// Why: an exception cannot be reported from everywhere. Asio loses a coroutine whose frame was
/// refused, and the code that waits for it waits for ever. What was received is on the disk as
/// after SIGKILL, the kernel closes what was bound or attached, and the peer sees its connection
/// close.
void end_where_memory_is_refused() noexcept;

}  // namespace onehop::tool
