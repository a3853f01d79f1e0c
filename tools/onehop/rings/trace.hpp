// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RingTrace: what was seen of rings as a table for `onehop plot`: one row per sample and socket. A
// ring that is not mapped, and a count that is not known, is an empty cell.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"
#include "tools/onehop/rings/sampler.hpp"

namespace onehop::rings {

class RingTrace {
 public:
  /// open creates the file and writes its head. `of`: the program that is watched. Syscalls: open,
  /// write.
  [[nodiscard]] static Result<RingTrace> open(const std::string& path,
                                              const std::string& command_line, const Program& of);
  /// write adds a row for each socket. Error: the disk took no more.
  [[nodiscard]] Result<void> write(Nanos at, std::span<const Socket> sockets);
  /// close writes what is left. Syscalls: write, close.
  [[nodiscard]] Result<void> close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  RingTrace(std::string path, std::FILE* file) : path_{std::move(path)}, file_{file} {}
  [[nodiscard]] Error failed() const;
  std::string path_, line_;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace onehop::rings
