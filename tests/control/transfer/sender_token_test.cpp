// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the same command proves to be the same sender; other paths, another code and another user
// do not. Method: the kernel's own boot id; a child process that is another user.
#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include <string>
#include <vector>

#include "control/transfer/sender_token.hpp"

using namespace onehop;
using namespace onehop::transfer;

namespace {
session::PairingCode code_of(const std::string& code) {
  return session::PairingCode::from_text(code).value();
}
}  // namespace

TEST_CASE("the token is of one code and one list of paths", "[tools]") {
  const session::PairingCode code = code_of("a code of twenty letters"),
                             other_code = code_of("another code of twenty letters");
  const std::vector<std::string> paths{"a", "b"}, others{"a", "c"}, fewer{"ab"};
  const session::SenderToken token = sender_token(code, paths, "").value();
  CHECK(token != session::SenderToken{});
  CHECK(sender_token(code, paths, "").value() == token);
  CHECK(sender_token(code, others, "").value() != token);
  CHECK(sender_token(code, fewer, "").value() != token);
  CHECK(sender_token(code, paths, "stream").value() != token);
  CHECK(sender_token(other_code, paths, "").value() != token);
}

TEST_CASE("there is a token without a working directory", "[tools]") {
  const session::PairingCode code = code_of("a code of twenty letters");
  const std::vector<std::string> paths{"a"};
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string folder = "/tmp/onehop-token-XXXXXX";
    const bool is_gone = ::mkdtemp(folder.data()) != nullptr && ::chdir(folder.c_str()) == 0 &&
                         ::rmdir(folder.c_str()) == 0;
    ::_exit(is_gone && sender_token(code, paths, "").has_value() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("the token is of one user", "[tools]") {
  if (::geteuid() != 0) {
    WARN("only root can become another user");
    return;
  }
  const session::PairingCode code = code_of("a code of twenty letters");
  const session::SenderToken token = sender_token(code, {}, "").value();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0)
    ::_exit(::setuid(54'321) == 0 && sender_token(code, {}, "").value() != token ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
