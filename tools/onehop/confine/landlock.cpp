// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/confine/landlock.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/fd.hpp"

namespace onehop::confine {

namespace {

// Of linux/landlock.h; that of Debian 12 ends with ABI 2.
constexpr std::uint64_t fs_execute = 1ULL << 0, fs_write_file = 1ULL << 1, fs_read_file = 1ULL << 2,
                        fs_read_dir = 1ULL << 3, fs_remove_dir = 1ULL << 4,
                        fs_remove_file = 1ULL << 5, fs_make_dir = 1ULL << 7,
                        fs_make_reg = 1ULL << 8, fs_make_sock = 1ULL << 9, fs_make_sym = 1ULL << 12,
                        fs_refer = 1ULL << 13, fs_truncate = 1ULL << 14, fs_ioctl_dev = 1ULL << 15;
constexpr std::uint64_t fs_all_abi_2 = (fs_refer << 1) - 1;
constexpr std::uint64_t net_connect_tcp = 1ULL << 1;
constexpr std::uint64_t scope_abstract_unix = 1ULL << 0, scope_signal = 1ULL << 1;
constexpr unsigned rule_path_beneath = 1, rule_net_port = 2;
constexpr int abi_truncate = 3, abi_net = 4, abi_ioctl = 5, abi_scope = 6;

struct RulesetAttributes {
  std::uint64_t fs = 0, net = 0, scoped = 0;
};
struct PathAttributes {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
} __attribute__((packed));
struct PortAttributes {
  std::uint64_t allowed = 0, port = 0;
};

/// What a rule on a file, not on a folder, may name.
constexpr std::uint64_t fs_of_file =
    fs_execute | fs_write_file | fs_read_file | fs_truncate | fs_ioctl_dev;

std::uint64_t rights_of(Reach reach) {
  constexpr std::uint64_t read = fs_read_file | fs_read_dir;
  constexpr std::uint64_t output =
      read | fs_write_file | fs_truncate | fs_make_reg | fs_remove_file;
  switch (reach) {
    case Reach::read: return read;
    case Reach::device: return fs_read_file | fs_write_file | fs_ioctl_dev;
    case Reach::output: return output;
    case Reach::socket: return output | fs_make_sock;
    case Reach::tree: break;
  }
  return output | fs_make_dir | fs_make_sym | fs_remove_dir | fs_refer;
}

/// The size says which ABI a program was written for: an older kernel takes zeros behind its own.
RulesetAttributes handled_by(int abi) {
  RulesetAttributes handled{.fs = fs_all_abi_2};
  if (abi >= abi_truncate) handled.fs |= fs_truncate;
  if (abi >= abi_net) handled.net = net_connect_tcp;
  if (abi >= abi_ioctl) handled.fs |= fs_ioctl_dev;
  if (abi >= abi_scope) handled.scoped = scope_abstract_unix | scope_signal;
  return handled;
}

bool add_place(int ruleset, const Place& place, std::uint64_t handled) {
  const Fd at{::open(place.path.c_str(), O_PATH | O_CLOEXEC)};
  struct stat status {};
  if (!at.is_open() || ::fstat(at.get(), &status) != 0) return true;
  PathAttributes rule{.allowed = rights_of(place.reach) & handled, .parent = at.get()};
  if (!S_ISDIR(status.st_mode)) rule.allowed &= fs_of_file;
  // EBADFD: what no rule is needed for, as a pipe.
  return ::syscall(SYS_landlock_add_rule, ruleset, rule_path_beneath, &rule, 0) == 0 ||
         errno == EBADFD;
}

}  // namespace

int landlock_abi() noexcept {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Result<void> restrict_files(const LandlockRules& rules) {
  constexpr const char* attempt = "restrict which files can be opened (Landlock)";
  const int abi = landlock_abi();
  if (abi < landlock_abi_min)
    return abi == 0 ? errno_error(ExitCode::io_unavailable, attempt)
                    : Error{ExitCode::io_unavailable, attempt,
                            "this kernel cannot let files be renamed then",
                            "It takes Linux 5.19 or later", 0};
  const RulesetAttributes handled = handled_by(abi);
  const Fd ruleset{
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0))};
  bool is_done = ruleset.is_open();
  for (const Place& place : rules.places)
    is_done = is_done && add_place(ruleset.get(), place, handled.fs);
  for (const std::uint16_t port : rules.connect_ports) {
    const PortAttributes rule{.allowed = net_connect_tcp, .port = port};
    is_done = is_done && (handled.net == 0 || ::syscall(SYS_landlock_add_rule, ruleset.get(),
                                                        rule_net_port, &rule, 0) == 0);
  }
  is_done = is_done && ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0;
  if (is_done) return success();
  return errno_error(ExitCode::io_unavailable, attempt);
}

}  // namespace onehop::confine
