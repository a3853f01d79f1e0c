// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Broken: the first invariant of a schedule that did not hold, in words, and when that was seen.
#pragma once

#include <string>
#include <utility>

#include "engine/base/units.hpp"

namespace onehop::stress {

class Broken {
 public:
  void say(Instant at, std::string what) {
    if (!what_.empty()) return;
    at_ = at;
    what_ = std::move(what);
  }
  [[nodiscard]] bool is_broken() const { return !what_.empty(); }
  [[nodiscard]] const std::string& what() const { return what_; }
  [[nodiscard]] Instant at() const { return at_; }

 private:
  std::string what_;
  Instant at_{};
};

}  // namespace onehop::stress
