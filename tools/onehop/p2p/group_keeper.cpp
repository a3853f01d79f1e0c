// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/group_keeper.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <set>
#include <utility>

#include "control/p2p/network_manager.hpp"
#include "control/p2p/station.hpp"

namespace onehop::p2p {

namespace {

std::set<std::string> paths_of(Supplicant& supplicant) {
  std::set<std::string> paths;
  if (const auto interfaces = supplicant.interfaces(); interfaces.has_value())
    for (const Supplicant::Known& one : interfaces.value())
      if (one.is_group) paths.insert(one.path);
  return paths;
}

/// read_some returns what the other end wrote; empty: that is closed.
std::string read_some(const Fd& socket) {
  std::array<char, 256> bytes;
  ssize_t got = 0;
  while ((got = ::read(socket.get(), bytes.data(), bytes.size())) < 0 && errno == EINTR) {
  }
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

std::string read_to_end(const Fd& socket) {
  std::string all;
  for (std::string some = read_some(socket); !some.empty(); some = read_some(socket)) all += some;
  return all;
}

/// give_back: it may have been killed before the radio carried a mark.
void give_back(Supplicant& supplicant, const std::string& radio) {
  (void)leave_networks(supplicant, radio);
  if (is_managed(supplicant.bus(), radio)) return;
  if (const auto given = set_managed(supplicant.bus(), radio, true); given.has_error())
    std::fprintf(stderr, "onehop: %s\n", given.error().message().c_str());
}

[[noreturn]] void keep_group(const std::string& interface, const Fd& socket) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    (void)std::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "onehop-p2p", 0, 0, 0);
  auto supplicant = Supplicant::open({.interface = interface});
  const std::set<std::string> before =
      supplicant.has_value() ? paths_of(supplicant.value()) : std::set<std::string>{};
  const std::string radio = supplicant.has_value() ? supplicant.value().interface() : "";
  const bool was_managed = supplicant.has_value() && is_managed(supplicant.value().bus(), radio);
  // The parent may change both from now on.
  (void)!::write(socket.get(), "", 1);
  const std::string kept = read_to_end(socket);
  if (supplicant.has_error()) ::_exit(0);  // the parent had the same error, and formed nothing
  // Where NetworkManager had the radio, wpa_supplicant has another interface of it by now.
  if (auto again = Supplicant::open({.interface = radio}); again.has_value())
    supplicant = std::move(again);
  std::set<std::string> ours{kept};
  if (kept.empty()) {  // it ended while it formed one
    supplicant.value().stop_find();
    supplicant.value().cancel();
    (void)supplicant.value().announce(false);
    ours = paths_of(supplicant.value());
    for (const std::string& path : before) ours.erase(path);
  }
  for (const std::string& path : ours)
    if (const auto left = supplicant.value().remove_group(path); left.has_error())
      std::fprintf(stderr, "onehop: %s. By hand: onehop p2p leave\n",
                   left.error().message().c_str());
  if (was_managed) give_back(supplicant.value(), radio);
  ::_exit(0);
}

}  // namespace

Result<GroupKeeper> GroupKeeper::start(const std::string& interface) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error(ExitCode::internal_error, "make a socket pair for the keeper of the group");
  Fd ours{ends[0]}, theirs{ends[1]};
  std::fflush(nullptr);  // what is buffered is ours to write
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, "fork the keeper of the group");
  if (pid == 0) {
    ours.close();
    keep_group(interface, theirs);
  }
  theirs.close();
  (void)read_some(ours);  // it has looked at what was there before; or it has ended
  return GroupKeeper{std::move(ours), pid};
}

GroupKeeper::GroupKeeper(GroupKeeper&& other) noexcept
    : socket_{std::move(other.socket_)}, pid_{std::exchange(other.pid_, 0)} {}

GroupKeeper::~GroupKeeper() {
  if (pid_ == 0) return;
  socket_.close();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void GroupKeeper::keep(const std::string& group_path) {
  // A socket takes so little at once, and the keeper reads until it ends.
  (void)!::send(socket_.get(), group_path.data(), group_path.size(), MSG_NOSIGNAL);
}

}  // namespace onehop::p2p
