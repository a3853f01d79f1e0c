// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SilentPrompt reads one line from a terminal with echo off. Where the input is to be visible, it
// edits and shows the line itself, so that TAB can complete a word in it.
//
// Whatever signal ends or stops the process, the terminal is restored first; when the process
// continues in the foreground, echo is turned off again and the prompt is repeated. Only SIGKILL
// cannot be handled. Its state belongs to the process, as signal handlers do: one prompt at a time;
// main thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop::session {

enum class Typed : bool { hidden, shown };

/// complete_typed returns what TAB adds to `line`: the rest of the word of a code that begins
/// there, and a dash if another word follows. Empty: no word fits, or several do.
[[nodiscard]] std::string complete_typed(std::string_view line);

/// read_typed fills `line` up to a newline or the terminal's end, and returns the length. The input
/// is secret: the caller wipes it. Errors: usage, if the terminal cannot be silenced or read. A
/// longer line fills `line`. It does not return if a signal ends the process. Syscalls: sigaction,
/// pipe2, tcsetattr, poll, read, write, raise.
[[nodiscard]] Result<std::size_t> read_typed(int terminal, const std::string& prompt, Typed typed,
                                             std::span<std::byte> line);

}  // namespace onehop::session
