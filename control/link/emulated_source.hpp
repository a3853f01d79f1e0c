// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// EmulatedSource: facts of a model's link, from a Unix datagram socket. FactsPublisher: the model's
// end of it.
//
//   model (laboratory) ─▶ FactsPublisher ── facts datagram ──▶ socket file ─▶ EmulatedSource
//
// The facts are those of a Wi-Fi driver: a law sees no difference but the queue's sensor, which is
// `model`. Each fact carries the model's own time and period, so a late datagram brings facts that
// are old already, and a model that stops lets them grow old. Both ends read CLOCK_MONOTONIC. The
// receiver owns the socket file, mode 0600: only the same user and root can write to it.
#pragma once

#include <sys/un.h>

#include <cstdint>
#include <string>

#include "control/link/fact_source.hpp"
#include "control/link/facts_datagram.hpp"
#include "engine/base/fd.hpp"

namespace onehop::link {

/// A fact may be this far ahead of `now`, which was read before the datagram came. Too low: a busy
/// machine drops good facts. Too high: a wrong clock keeps facts alive.
inline constexpr Nanos facts_ahead_max = 20ms;

/// merge_facts copies a model's facts into `facts`. It ignores a fact that is older than the
/// present one (from a publisher that was replaced), or from the future. It takes a fact that is a
/// little ahead of `now` as of now. Pure.
void merge_facts(const law::LinkFacts& told, Instant now, law::LinkFacts& facts) noexcept;

class EmulatedSource final : public FactSource {
 public:
  /// Implementation constant: datagrams read per call. More wait for the next call, so that a flood
  /// costs a bounded time.
  static constexpr int datagrams_per_read_max = 64;

  /// open binds `path`, replacing a socket without an owner. Syscalls: socket, fchmod, connect,
  /// unlink, bind.
  [[nodiscard]] static Result<EmulatedSource> open(const std::string& path);
  EmulatedSource(EmulatedSource&& other) noexcept;
  EmulatedSource& operator=(EmulatedSource&&) = delete;
  ~EmulatedSource() override;  ///< removes the socket file

  [[nodiscard]] std::string_view name() const noexcept override { return "emulated"; }
  [[nodiscard]] std::string remark() const override { return path_; }
  /// Syscalls: recv per datagram, and one.
  void read(Instant now, law::LinkFacts& facts) override;
  [[nodiscard]] std::uint64_t refused_total() const noexcept { return refused_total_; }

 private:
  EmulatedSource(Fd&& socket, std::string path)
      : socket_{std::move(socket)}, path_{std::move(path)} {}
  Fd socket_;
  std::string path_;
  std::uint64_t refused_total_ = 0;
};

class FactsPublisher {
 public:
  /// open makes the sending socket, even before a listener exists. Syscalls: socket.
  [[nodiscard]] static Result<FactsPublisher> open(const std::string& path);
  /// publish sends `facts` as they are; false if there is no listener or it is behind. It never
  /// waits. Syscalls: sendto.
  bool publish(const law::LinkFacts& facts) noexcept;

 private:
  FactsPublisher(Fd&& socket, const sockaddr_un& address)
      : socket_{std::move(socket)}, address_{address} {}
  Fd socket_;
  sockaddr_un address_;
};

}  // namespace onehop::link
