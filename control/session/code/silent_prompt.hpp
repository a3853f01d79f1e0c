// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SilentPrompt: one line from a terminal whose echo is off meanwhile. Where what is typed is to be
// seen, the line is edited and shown here, so that TAB can complete a word in it.
//
// Whatever signal ends or stops the process, the terminal is as it was before the process goes;
// when it is continued in the foreground, echo is set again and the prompt is repeated. SIGKILL
// alone cannot be met. Its state is of the process, as handlers of signals are: one at a time; the
// main thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop::session {

enum class Typed : bool { hidden, shown };

/// complete_typed gives what TAB adds behind `line`: the rest of the word of a code that is begun
/// there, and a dash where another word follows. Empty: nothing, or several words begin so.
[[nodiscard]] std::string complete_typed(std::string_view line);

/// read_typed fills `line` up to a newline or the terminal's end, and returns how much. What it
/// reads is secret: the caller wipes. Errors: usage, where the terminal cannot be silenced or read.
/// A longer line fills `line`. Does not return where a signal ends the process. Syscalls:
/// sigaction, pipe2, tcsetattr, poll, read, write, raise.
[[nodiscard]] Result<std::size_t> read_typed(int terminal, const std::string& prompt, Typed typed,
                                             std::span<std::byte> line);

}  // namespace onehop::session
