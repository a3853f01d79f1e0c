// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Screen: Telemetry as lines of text, never wider or higher than asked. Pure.
//
//   our queue to the link                          in its safe range  <- BOTTLENECK
//   [**|*****####|######-------                                          ] 2.50 MB
//    ^0   ^under ^target ^held  ^over
//
// A bar's texture says the same as its colour: what is held within the safe range and outside of
// it, and where the range is when the bar does not reach it. Everything is one column wide.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tools/onehop/watch/telemetry.hpp"

namespace onehop::watch {

enum class Style : std::uint8_t { plain, strong, faint, good, low, high };

/// Span: text of one style. Text is ASCII, or UTF-8 of glyphs that are one column wide.
struct Span {
  std::string text;
  Style style = Style::plain;
};
/// Line: `keep` ranks lines when there is no room for all: the lowest goes first.
struct Line {
  std::vector<Span> spans;
  int keep = 0;
};

struct ScreenOptions {
  std::size_t columns = 80;
  std::size_t rows = 0;  ///< 0: as many as there are
  bool is_utf8 = true;
  bool has_color = true;
};

/// History: goodput_bps of the last minute, one value a second, newest last.
using History = std::deque<std::int64_t>;

/// lines_of lays out one moment.
[[nodiscard]] std::vector<Line> lines_of(const Telemetry& telemetry, const History& history,
                                         const ScreenOptions& options);

/// text_of cuts lines to the size asked and renders them, each with a newline. Colours are SGR
/// sequences.
[[nodiscard]] std::string text_of(const std::vector<Line>& lines, const ScreenOptions& options);

/// columns_of counts what a terminal shows of `text` without escape sequences.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// bar_of draws one buffer in `width` columns over 0 .. `scale_bytes`.
[[nodiscard]] std::vector<Span> bar_of(const BufferView& buffer, std::int64_t scale_bytes,
                                       std::size_t width, bool is_utf8);

/// scale_of is the end of a bar: a round number beyond all its marks, or the capacity if that is
/// nearer.
[[nodiscard]] std::int64_t scale_of(const BufferView& buffer);

/// words_of says what a bottleneck means to the person who waits.
[[nodiscard]] std::string words_of(const Telemetry& telemetry);

}  // namespace onehop::watch
