// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/confine/rights_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "tools/onehop/confine/capabilities.hpp"
#include "tools/onehop/confine/helper_process.hpp"
#include "xdp/local_rights.hpp"

namespace onehop::confine {

namespace {

constexpr Capabilities kept = bit_of(CAP_NET_RAW) | bit_of(CAP_NET_ADMIN) | bit_of(CAP_BPF);
constexpr std::size_t fds_max = 2;
// Enough for all our ports; more would let a peer's program take the machine's memory.
constexpr int buffer_bytes_max = 64 << 20;

enum class Verb : std::uint32_t { open_xdp_socket, attach_program, set_socket, force_buffer };

struct Question {
  Verb verb{};
  std::int32_t number = 0;  ///< interface, queue, or bytes
  std::int32_t option = 0;  ///< of force_buffer
  bool is_generic = false, has_fragments = false;
};

struct Answer {
  ExitCode code = ExitCode::done;
  int errno_value = 0;
  char attempt[128] = {}, cause[1024] = {}, hint[256] = {};
};

using Fds = std::array<Fd, fds_max>;

/// What travels is one datagram with descriptors beside it. 0: the other end is gone.
template <class Message>
bool send_message(int socket, const Message& message, std::span<const int> fds) {
  iovec part{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(fds_max * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  while ((sent = ::sendmsg(socket, &header, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == static_cast<ssize_t>(sizeof message);
}

template <class Message>
bool receive_message(int socket, Message& message, Fds& fds) {
  iovec part{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(fds_max * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = 0;
  while ((got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); got > 0 && at != nullptr;
       at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < std::min(count, fds_max); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
      fds[i] = Fd{fd};
    }
  }
  return got == static_cast<ssize_t>(sizeof message);
}

Answer answer_of(const Error& error) {
  Answer answer{.code = error.code, .errno_value = error.errno_value};
  std::snprintf(answer.attempt, sizeof answer.attempt, "%s", error.attempt.c_str());
  std::snprintf(answer.cause, sizeof answer.cause, "%s", error.cause.c_str());
  std::snprintf(answer.hint, sizeof answer.hint, "%s", error.hint.c_str());
  return answer;
}

Error error_of(const Answer& answer) {
  return {answer.code, answer.attempt, answer.cause, answer.hint, answer.errno_value};
}

/// do_it gives the descriptors that go back.
Result<Fds> do_it(const Question& question, const Fds& with) {
  xdp::LocalRights own;
  Fds made;
  switch (question.verb) {
    case Verb::open_xdp_socket: {
      ONEHOP_TRY(socket, own.open_xdp_socket());
      made[0] = std::move(socket);
      return Result<Fds>{std::move(made)};
    }
    case Verb::attach_program: {
      ONEHOP_TRY(steer, own.attach_program({.ifindex = question.number,
                                            .udp_socket = with[0].get(),
                                            .is_generic = question.is_generic,
                                            .has_fragments = question.has_fragments}));
      made = {std::move(steer.map), std::move(steer.link)};
      return Result<Fds>{std::move(made)};
    }
    case Verb::set_socket: {
      ONEHOP_TRYV(own.set_socket(with[0].get(), static_cast<std::uint32_t>(question.number),
                                 with[1].get()));
      return Result<Fds>{std::move(made)};
    }
    case Verb::force_buffer:
      if ((question.option == SO_RCVBUFFORCE || question.option == SO_SNDBUFFORCE) &&
          own.force_buffer(with[0].get(), question.option,
                           std::clamp(question.number, 0, buffer_bytes_max)))
        return Result<Fds>{std::move(made)};
      break;
  }
  return Error{ExitCode::privilege_missing, "do it with another's rights", "refused", "", EPERM};
}

void serve(const Fd& theirs, pid_t asker) {
  const int socket = theirs.get();
  close_streams();  // so that a reader of the other process's output sees its end
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || keep_capabilities(kept).has_error())
    ::_exit(1);
  // It ends with the one whose rights it keeps, whoever else holds the other end by then.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || ::getppid() != asker) ::_exit(1);
  for (;;) {
    Question question;
    Fds with;
    if (!receive_message(socket, question, with)) ::_exit(0);
    const Result<Fds> done = do_it(question, with);
    std::array<int, fds_max> back{};
    std::size_t count = 0;
    if (done.has_value())
      for (const Fd& fd : done.value())
        if (fd.is_open()) back[count++] = fd.get();
    const Answer answer = done.has_value() ? Answer{} : answer_of(done.error());
    if (!send_message(socket, answer, std::span{back}.first(count))) ::_exit(0);
  }
}

Result<Fds> ask(std::mutex& mutex, const Fd& socket, const Question& question,
                std::span<const int> with) {
  const std::lock_guard lock{mutex};
  Answer answer;
  Fds made;
  if (!send_message(socket.get(), question, with) || !receive_message(socket.get(), answer, made))
    return Error{ExitCode::privilege_missing, "do it with another's rights",
                 "the process that keeps them (onehop-rights) has ended", "Run it again", ESRCH};
  if (answer.code != ExitCode::done) return error_of(answer);
  return Result<Fds>{std::move(made)};
}

}  // namespace

Result<std::unique_ptr<RightsProcess>> RightsProcess::start() {
  if ((effective_capabilities() & kept) == 0) return std::unique_ptr<RightsProcess>{};
  const pid_t asker = ::getpid();
  ONEHOP_TRY(helper, start_helper("onehop-rights", [asker](Fd socket) { serve(socket, asker); }));
  return std::unique_ptr<RightsProcess>{new RightsProcess{std::move(helper.socket), helper.pid}};
}

RightsProcess::~RightsProcess() {
  socket_.close();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Fd> RightsProcess::open_xdp_socket() {
  ONEHOP_TRY(made, ask(mutex_, socket_, {.verb = Verb::open_xdp_socket}, {}));
  return Result<Fd>{std::move(made[0])};
}

Result<SteerFds> RightsProcess::attach_program(const SteerRequest& request) {
  ONEHOP_TRY(made, ask(mutex_, socket_,
                       {.verb = Verb::attach_program,
                        .number = request.ifindex,
                        .is_generic = request.is_generic,
                        .has_fragments = request.has_fragments},
                       std::array{request.udp_socket}));
  return Result<SteerFds>{SteerFds{std::move(made[0]), std::move(made[1])}};
}

Result<void> RightsProcess::set_socket(int map, std::uint32_t queue, int xsk) {
  ONEHOP_TRYV(ask(mutex_, socket_,
                  {.verb = Verb::set_socket, .number = static_cast<std::int32_t>(queue)},
                  std::array{map, xsk}));
  return success();
}

bool RightsProcess::force_buffer(int socket, int option, int bytes) noexcept {
  return ask(mutex_, socket_, {.verb = Verb::force_buffer, .number = bytes, .option = option},
             std::array{socket})
      .has_value();
}

}  // namespace onehop::confine
