// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The process "onehop-desktop" (desktop.hpp): notifications of the desktop, and a file manager that
// shows what came (confine/helper_process.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fd.hpp"

namespace onehop::tool {

/// A notice is one message between the two processes: fields, each ended by a NUL.
///
///   to it     ask OFFER SUMMARY BODY      done SUMMARY BODY PLACE      gone OFFER
///   from it   answer OFFER accept|refuse|none WHY                      trouble WHAT
inline constexpr std::size_t notice_bytes_max = 16 * 1024;
[[nodiscard]] std::string join_notice(const std::vector<std::string>& fields);
[[nodiscard]] std::vector<std::string> split_notice(std::string_view notice);

/// markup_of is a text as the body of a notification has it, where a daemon reads markup there.
[[nodiscard]] std::string markup_of(std::string_view text);
/// uri_of is the file URI of an absolute path.
//= RFC 8089 section 2
[[nodiscard]] std::string uri_of(std::string_view path);

/// run_notifications serves until the other end of `socket` is closed.
void run_notifications(Fd socket);

}  // namespace onehop::tool
