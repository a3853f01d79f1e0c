// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NetNamespace: an anonymous network namespace for tests. It has no name to clean up: the kernel
// removes it, with its devices, when the last descriptor and socket in it are closed, also when the
// test is killed.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/base/fd.hpp"

namespace onehop::test {

class NetNamespace {
 public:
  /// Needs CAP_SYS_ADMIN; throws where the kernel refuses.
  NetNamespace() : home_{open_current()} {
    if (::unshare(CLONE_NEWNET) != 0) throw std::runtime_error("unshare(CLONE_NEWNET) failed");
    own_ = open_current();
    leave();
    run("ip link set lo up");
  }

  /// inside calls f with the calling thread in the namespace; sockets made there stay there.
  template <class F>
  auto inside(F&& f) {
    struct Back {
      NetNamespace* ns;
      ~Back() { ns->leave(); }
    };
    enter();
    const Back back{this};
    return std::forward<F>(f)();
  }

  /// run is a shell command in the namespace; throws where it fails.
  void run(const std::string& command) {
    if (inside([&] { return std::system(command.c_str()); }) != 0)
      throw std::runtime_error("failed: " + command);
  }

  /// path names the namespace for `ip link ... netns`.
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(own_.get());
  }

 private:
  static Fd open_current() { return Fd{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)}; }
  void enter() {
    if (::setns(own_.get(), CLONE_NEWNET) != 0) throw std::runtime_error("setns failed");
  }
  // A test that went on in the wrong namespace would touch the host's network.
  void leave() noexcept {
    if (::setns(home_.get(), CLONE_NEWNET) != 0) std::abort();
  }

  Fd home_;
  Fd own_;
};

/// enter_own_namespace: the whole process goes over, once. Where it may not, or `setup` fails, the
/// program is skipped.
inline void enter_own_namespace(const char* setup) {
  static const bool is_in =
      ::geteuid() == 0 && ::unshare(CLONE_NEWNET) == 0 && std::system(setup) == 0;
  if (is_in) return;
  std::printf("skipped: a network namespace needs root and ip(8)\n");
  std::fflush(stdout);
  std::_Exit(77);
}

}  // namespace onehop::test
