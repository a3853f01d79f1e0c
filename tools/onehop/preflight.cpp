// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/preflight.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/fd.hpp"
#include "engine/base/system/access.hpp"
#include "engine/base/system/address.hpp"

namespace onehop::tool {

namespace {

bool may(const std::string& path, int mode) {
  return access_fault(AT_FDCWD, path.c_str(), mode) == 0;
}

Result<void> check_output_file(const std::string& what, const std::string& file) {
  if (file.empty()) return success();
  const std::string attempt = "write the " + what + " " + file;
  const std::string name_one = "Name a file with --" + what;
  struct stat status {};
  const bool exists = ::stat(file.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    return Error{ExitCode::local_file_error, attempt, "it is a folder", name_one, EISDIR};
  const bool can_be_made =
      !exists && errno == ENOENT && ::stat(folder_of(file).c_str(), &status) == 0;
  if ((exists || can_be_made) && (exists ? may(file, W_OK) : may(folder_of(file), W_OK | X_OK)))
    return success();
  return errno_error(ExitCode::local_file_error, attempt,
                     name_one + " in a folder that you may write to");
}

}  // namespace

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : file.substr(0, slash);
}

Result<void> check_folder(const std::string& folder) {
  const std::string attempt = "receive into " + folder;
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    return errno_error(ExitCode::local_file_error, attempt,
                       "Make the folder, or name another with --dir");
  if (!S_ISDIR(status.st_mode))
    return Error{ExitCode::local_file_error, attempt, "it is no folder", "Name a folder with --dir",
                 ENOTDIR};
  if (!may(folder, W_OK | X_OK))
    return errno_error(ExitCode::local_file_error, attempt,
                       "Name a folder that you may write to with --dir");
  return success();
}

Result<void> check_output_files(const api::Options& options) {
  ONEHOP_TRYV(check_output_file("trace", options.trace_file));
  return check_output_file("receipt", options.receipt_file);
}

Result<void> check_interface(const std::string& interface) {
  if (interface.empty() || ::if_nametoindex(interface.c_str()) != 0) return success();
  return errno_error(ExitCode::io_unavailable, "look at interface " + interface,
                     "`ip link` lists the interfaces");
}

Result<void> check_udp_port(const transfer::Endpoint& listen) {
  // Data comes to the address that a sender reaches us by. Who holds the port on all addresses
  // holds it on this one, too.
  const auto address = IpAddress::parse(listen.host.empty() ? "127.0.0.1" : listen.host);
  if (!address) return success();
  const Endpoint local{*address, listen.port};
  const SocketAddress at = local.to_sockaddr();
  const Fd socket{::socket(address->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  // The sockets by which receivers are found have this port on a group's address, and share it.
  const int is_on = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof is_on);
  if (!socket.is_open() || ::bind(socket.get(), at.get(), at.size_bytes) == 0 ||
      errno != EADDRINUSE)
    return success();
  return errno_error(ExitCode::io_unavailable, "receive data on UDP " + local.text(),
                     "Another program listens there: choose another port with --listen ADDR:PORT");
}

}  // namespace onehop::tool
