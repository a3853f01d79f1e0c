// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a thread or memory that the system refuses is an Error with its name, and ends no
// program. Method: a child process without room in its address space, so that the kernel itself
// refuses.
#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/memory.hpp"
#include "engine/base/system/mapping.hpp"
#include "engine/base/system/thread.hpp"
#include "tests/support/needs.hpp"

using namespace onehop;

namespace {

/// is_true_without_room runs `claim` where nothing more can be mapped, in a child process.
template <class Claim>
bool is_true_without_room(Claim claim) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit none{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ::_exit(::setrlimit(RLIMIT_AS, &none) == 0 && claim() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("a thread that is refused is an error that names it", "[base]") {
  ONEHOP_NEEDS(onehop::test::has_memory_limit(), "RLIMIT_AS refuses no memory here");
  CHECK(is_true_without_room([] {
    const auto thread = start_thread("engine", [] {});
    return !thread.has_value() && thread.error().code == ExitCode::io_unavailable &&
           thread.error().attempt == "start the engine thread" &&
           thread.error().errno_value == EAGAIN && !thread.error().hint.empty();
  }));
  auto thread = start_thread("engine", [] {});
  REQUIRE(thread.has_value());
  thread.value().join();
}

TEST_CASE("memory that is refused is an error that says what it was for, as far as that is known",
          "[base]") {
  ONEHOP_NEEDS(onehop::test::has_memory_limit(), "RLIMIT_AS refuses no memory here");
  CHECK(is_true_without_room([] {
    try {
      auto memory = Mapping::frame_memory(64 << 20);
      if (!memory.has_value()) throw MemoryRefused{memory.error()};
    } catch (const std::bad_alloc& refused) {
      const Error error = memory_error("run", refused);
      return error.attempt.find("64 MiB") != std::string::npos && error.errno_value == ENOMEM &&
             !error.hint.empty();
    }
    return false;
  }));
  const Error unknown = memory_error("run the session", std::bad_alloc{});
  CHECK(unknown.attempt == "run the session");
  CHECK(unknown.cause == "out of memory");
  CHECK(unknown.code == ExitCode::io_unavailable);
}
