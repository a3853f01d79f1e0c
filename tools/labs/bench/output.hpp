// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Output of `onehop bench`: tables for people, or JSON. Events: start, interval, sample (one run),
// result (one point over its rounds), end, error. With -J the same objects in one document.
#pragma once

#include <vector>

#include "tools/labs/bench/options.hpp"
#include "tools/labs/bench/points.hpp"

namespace onehop::bench {

class Output {
 public:
  explicit Output(const BenchOptions& options) : options_{options} {}

  void start();
  void interval(int round, const std::string& point, const Interval& interval);
  void sample(int round, const PointResult& point);
  void results(const std::vector<PointResult>& results);
  void error(const Error& error);
  void end(ExitCode code);

 private:
  void event(const std::string& type, Json body);
  [[nodiscard]] bool is_for_people() const { return !options_.is_json && !options_.is_document; }
  const BenchOptions& options_;
  Json document_;
};

/// base_of finds the point that ratios are to: --baseline's, or the first where none was named and
/// there are several.
[[nodiscard]] Result<std::optional<std::size_t>> base_of(const BenchOptions& options,
                                                         const std::vector<std::string>& names);

}  // namespace onehop::bench
