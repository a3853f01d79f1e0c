// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace onehop::plot {

namespace {

constexpr std::size_t missing = SIZE_MAX;
constexpr std::size_t shown_max = 24;

/// shown is a cell for a message: short and printable.
std::string shown(std::string_view cell) {
  std::string text{cell.substr(0, shown_max)};
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return "'" + text + (cell.size() > shown_max ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::istream& in, const Table& table, std::span<const std::string_view> wanted)
      : in_{in}, table_{table}, wanted_{wanted} {}

  Result<TraceHead> run(const std::function<void(const TraceRow&)>& take) {
    TraceHead head;
    ONEHOP_TRYV(read_head(head));
    std::vector<std::optional<double>> values(wanted_.size());
    std::size_t rows = 0;
    for (;; ++rows) {
      ONEHOP_TRY(has_line, next_line());
      if (!has_line) break;
      ONEHOP_TRYV(split());
      ONEHOP_TRY(row, row_of(values));
      take(row);
    }
    if (rows == 0)
      return refuse("it has no rows after its columns",
                    "No tick was traced: the transfer ended before it began");
    return TraceHead{std::move(head)};
  }

 private:
  [[nodiscard]] Error refuse(std::string cause, std::string hint = {}) const {
    if (hint.empty()) hint = "Is it a file of '" + table_.maker + "'?";
    return {ExitCode::local_file_error, fmt::format("read the {} {}", table_.what, table_.name),
            fmt::format("line {}: {}", std::max<std::size_t>(number_, 1), cause), std::move(hint)};
  }
  [[nodiscard]] Error refuse_cell(std::size_t column, std::string_view what) const {
    return refuse(fmt::format("column {} ({}): {} {}", column + 1, columns_[column],
                              shown(cells_[column]), what));
  }

  /// next_line gives false at the end of the file.
  Result<bool> next_line() {
    line_.resize(line_bytes_max + 2);
    in_.getline(line_.data(), static_cast<std::streamsize>(line_.size()));
    const auto got = static_cast<std::size_t>(in_.gcount());
    if (got == 0 && in_.eof()) return false;
    ++number_;
    if (in_.bad()) return refuse("it cannot be read", "Is the disk in order?");
    if (in_.fail()) return refuse("it is longer than 64 KiB");
    if (in_.eof()) {
      const std::size_t column =
          static_cast<std::size_t>(
              std::count(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(got), ',')) +
          1;
      return refuse(fmt::format("column {}: the file is cut off here", column),
                    "`sed -i '$d' FILE` removes this line and leaves those before it");
    }
    line_.resize(got - 1);  // getline counts the newline
    return true;
  }

  Result<void> read_head(TraceHead& head) {
    for (;;) {
      ONEHOP_TRY(has_line, next_line());
      if (!has_line)
        return number_ == 0 ? refuse("the file is empty") : refuse("the columns are missing");
      if (!line_.starts_with('#')) break;
      for (const auto& [word, text] : {std::pair{"# command line: ", &head.command_line},
                                       {"# version: ", &head.version},
                                       {"# config: ", &head.config}})
        if (line_.starts_with(word)) *text = line_.substr(std::string_view{word}.size());
    }
    ONEHOP_TRYV(split_line());
    columns_.assign(cells_.begin(), cells_.end());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (std::find(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(i),
                    columns_[i]) != columns_.begin() + static_cast<std::ptrdiff_t>(i))
        return refuse(
            fmt::format("column {}: a second one is called {}", i + 1, shown(columns_[i])));
    }
    for (const std::string_view name : wanted_) places_.push_back(place_of(name));
    at_ = place_of("t_ns");
    bottleneck_ = place_of("bottleneck");
    law_ = place_of("law");
    if (at_ == missing) return refuse("there is no column 't_ns'");
    for (const std::string_view name : head.is_of_rings() ? table_.needed_of_rings : table_.needed)
      if (place_of(name) == missing) return refuse(fmt::format("there is no column '{}'", name));
    return success();
  }

  Result<void> split_line() {
    cells_.clear();
    std::string_view rest = line_;
    for (;;) {
      const std::size_t comma = rest.find(',');
      cells_.push_back(rest.substr(0, comma));
      if (cells_.size() > columns_max)
        return refuse(fmt::format("column {}: there are more than {}", cells_.size(), columns_max));
      if (comma == std::string_view::npos) return success();
      rest.remove_prefix(comma + 1);
    }
  }

  Result<void> split() {
    ONEHOP_TRYV(split_line());
    if (cells_.size() == columns_.size()) return success();
    if (cells_.size() < columns_.size())
      return refuse(fmt::format("column {}: the row ends here, and {} follow in the others",
                                cells_.size(), columns_.size() - cells_.size()));
    return refuse(
        fmt::format("column {}: the row goes on behind the last one", columns_.size() + 1));
  }

  Result<TraceRow> row_of(std::vector<std::optional<double>>& values) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      values[i].reset();
      if (places_[i] == missing || cells_[places_[i]].empty()) continue;
      ONEHOP_TRY(number, number_at(places_[i]));
      values[i] = static_cast<double>(number);
    }
    ONEHOP_TRY(at, number_at(at_));
    if (at < last_ || at > (std::int64_t{1} << 62))
      return refuse_cell(at_, at < 0       ? "is no time"
                              : at < last_ ? "is before the row before it"
                                           : "is no time");
    last_ = at;
    const auto word = [&](std::size_t place) {
      return place == missing ? std::string_view{} : cells_[place];
    };
    return TraceRow{Nanos{at}, values, word(bottleneck_), word(law_)};
  }

  Result<std::int64_t> number_at(std::size_t column) const {
    const std::string_view cell = cells_[column];
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error == std::errc::result_out_of_range) return refuse_cell(column, "is out of range");
    if (error != std::errc{} || end != cell.data() + cell.size())
      return refuse_cell(column, "is no whole number");
    return value;
  }

  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    const auto found = std::ranges::find(columns_, name);
    return found == columns_.end() ? missing : static_cast<std::size_t>(found - columns_.begin());
  }

  std::istream& in_;
  const Table& table_;
  std::span<const std::string_view> wanted_;
  std::string line_;
  std::size_t number_ = 0;  // of the line, from 1
  std::vector<std::string> columns_;
  std::vector<std::string_view> cells_;  // of line_
  std::vector<std::size_t> places_;
  std::size_t at_ = missing, bottleneck_ = missing, law_ = missing;
  std::int64_t last_ = 0;
};

}  // namespace

Result<TraceHead> read_table(std::istream& in, const Table& table,
                             std::span<const std::string_view> wanted,
                             const std::function<void(const TraceRow&)>& take) {
  return Parser{in, table, wanted}.run(take);
}

Result<TraceHead> read_trace(std::istream& in, const std::string& name,
                             std::span<const std::string_view> wanted,
                             const std::function<void(const TraceRow&)>& take) {
  static constexpr std::array<std::string_view, 2> needed{"rate_bytes_per_s", "bottleneck"};
  static constexpr std::array<std::string_view, 1> needed_of_rings{"socket"};
  return read_table(in,
                    {.name = name,
                     .what = "trace",
                     .maker = "onehop send --trace",
                     .needed = needed,
                     .needed_of_rings = needed_of_rings},
                    wanted, take);
}

}  // namespace onehop::plot
