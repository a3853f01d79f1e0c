// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/emulated_source.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace onehop::link {

namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error{
        ExitCode::usage, "use the socket file '" + path + "'",
        "a socket's path has 1 to " + std::to_string(sizeof address.sun_path - 1) + " bytes",
        "Take a shorter one", 0};
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> open_socket() {
  Fd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.is_open()) return errno_error(ExitCode::internal_error, "open a Unix socket");
  return socket;
}

template <class T>
void merge(law::MaybeFact<T>& into, const law::MaybeFact<T>& from, Instant now) noexcept {
  if (!from || from->at > now + facts_ahead_max || (into && from->at < into->at)) return;
  into = from;
  into->at = std::min(into->at, now);
}

}  // namespace

void merge_facts(const law::LinkFacts& told, Instant now, law::LinkFacts& facts) noexcept {
  facts.medium = told.medium;
  each_carried_fact([&](auto fact) { merge(facts.*fact, told.*fact, now); });
  if (facts.exact_queue) facts.exact_queue->value.queue.at = facts.exact_queue->at;
}

Result<EmulatedSource> EmulatedSource::open(const std::string& path) {
  ONEHOP_TRY(address, address_of(path));
  ONEHOP_TRY(socket, open_socket());
  // The mode of an unbound socket is what its file gets (less the umask): there is no moment in
  // which others may write.
  if (::fchmod(socket.get(), 0600) != 0)
    return errno_error(ExitCode::local_file_error, "keep the socket file to this user");
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), name, sizeof address) == 0)
    return EmulatedSource{std::move(socket), path};
  const std::string attempt = "listen for a model of the link on " + path;
  if (errno != EADDRINUSE)
    return errno_error(ExitCode::local_file_error, attempt,
                       "Does the folder exist, and may you write to it?");
  // A socket file without a listener is left over from a killed program. Any other file is not ours
  // to remove.
  ONEHOP_TRY(probe, open_socket());
  struct stat there {};
  const bool is_stale = ::connect(probe.get(), name, sizeof address) != 0 &&
                        errno == ECONNREFUSED && ::lstat(path.c_str(), &there) == 0 &&
                        S_ISSOCK(there.st_mode);
  if (!is_stale || ::unlink(path.c_str()) != 0 || ::bind(socket.get(), name, sizeof address) != 0)
    return Error{ExitCode::local_file_error, attempt, "the file exists and is in use",
                 "Take another path", EADDRINUSE};
  return EmulatedSource{std::move(socket), path};
}

EmulatedSource::EmulatedSource(EmulatedSource&& other) noexcept
    : socket_{std::move(other.socket_)},
      path_{std::move(other.path_)},
      refused_total_{other.refused_total_} {
  other.path_.clear();
}

EmulatedSource::~EmulatedSource() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void EmulatedSource::read(Instant now, law::LinkFacts& facts) {
  error_.reset();
  std::array<std::byte, facts_datagram_bytes_max + 1>
      buffer;  // one more byte shows that a datagram is too long
  for (int i = 0; i < datagrams_per_read_max; ++i) {
    const ssize_t length = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (length < 0) {
      if (errno != EAGAIN && errno != EINTR)
        error_ = errno_error(ExitCode::local_file_error, "read the model's facts");
      return;
    }
    if (const auto told = decode_facts({buffer.data(), static_cast<std::size_t>(length)}))
      merge_facts(*told, now, facts);
    else
      ++refused_total_;
  }
}

Result<FactsPublisher> FactsPublisher::open(const std::string& path) {
  ONEHOP_TRY(address, address_of(path));
  ONEHOP_TRY(socket, open_socket());
  return FactsPublisher{std::move(socket), address};
}

bool FactsPublisher::publish(const law::LinkFacts& facts) noexcept {
  std::array<std::byte, facts_datagram_bytes_max> buffer;
  const std::size_t length = encode_facts(facts, buffer);
  return ::sendto(socket_.get(), buffer.data(), length, MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address_),
                  sizeof address_) == static_cast<ssize_t>(length);
}

}  // namespace onehop::link
