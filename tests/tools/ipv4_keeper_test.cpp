// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a plain station gets an address by a real DHCP client, and nothing of it outlives the
//         group, the process, or a failure.
// Method: two network namespaces with a veth pair between them, busybox's udhcpc in one. Needs
// root,
//         dnsmasq, and busybox: of this system, or as the virtual machine's tests unpack it.
// Bounds: exact; what a process does is waited for, at most 10 s.
#include "tools/onehop/p2p/ipv4_keeper.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/support/bare_test.hpp"
#include "tests/support/net_namespace.hpp"

using namespace onehop;
using onehop::test::NetNamespace;
namespace fs = std::filesystem;

namespace {

constexpr int wait_steps = 100, step_ms = 100;

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < wait_steps && !condition(); ++i) (void)::poll(nullptr, 0, step_ms);
  return condition();
}

std::string find_busybox() {
  const char* const cache = std::getenv("ONEHOP_VM_CACHE");
  const char* const home = std::getenv("HOME");
  for (const std::string& path :
       {std::string{"/bin/busybox"}, std::string{"/usr/bin/busybox"},
        (cache != nullptr ? cache : "/none") + std::string{"/root/bin/busybox"},
        (home != nullptr ? home : "/none") + std::string{"/.cache/onehop-vm/root/bin/busybox"}})
    if (::access(path.c_str(), X_OK) == 0) return path;
  test::skip("busybox is not installed, and tests/vm/vm has not unpacked it");
}

/// process is the one of this name in the calling thread's namespace; 0: there is none.
pid_t process(const std::string& name) {
  std::error_code failed;
  const fs::path ours = fs::read_symlink("/proc/thread-self/ns/net", failed);
  for (const auto& entry : fs::directory_iterator{"/proc", failed}) {
    if (read_file(entry.path() / "comm") != name + "\n") continue;
    if (fs::read_symlink(entry.path() / "ns/net", failed) == ours)
      return std::stoi(entry.path().filename());
  }
  return 0;
}
pid_t keeper() { return process("onehop-dhcp"); }
pid_t server() { return process("dnsmasq"); }

class World {
 public:
  explicit World(std::string path) : busybox{std::move(path)} {
    std::ofstream{folder_ / "script"} << "#!/bin/sh\n"
                                         "[ \"$1\" = bound ] || exit 0\n"
                                         "env >"
                                      << folder_.string()
                                      << "/lease\n"
                                         "ip addr flush dev s0\n"
                                         "ip addr add $ip/$mask dev s0\n";
    fs::permissions(folder_ / "script", fs::perms::owner_all);
    link();
  }
  ~World() {
    host.inside([] {
      if (const pid_t pid = keeper(); pid != 0) ::kill(pid, SIGKILL);
      return 0;
    });
    fs::remove_all(folder_);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void link() {
    host.run("ip link add g0 type veth peer name s0 netns " + station.path());
    host.run("ip link set g0 up");
    station.run("ip link set s0 up");
  }
  Result<void> keep() {
    return host.inside([] { return p2p::keep_ipv4("g0"); });
  }
  bool is_kept() {
    return host.inside([] { return keeper() != 0 || server() != 0; });
  }
  bool has_address() {
    return host.inside([] { return std::system("ip -4 -o addr show dev g0 | grep -q inet") == 0; });
  }
  /// lease runs the client and returns what it was told, as NAME=VALUE lines.
  std::string lease() {
    fs::remove(folder_ / "lease");
    station.run(busybox + " udhcpc -f -q -n -t 20 -T 1 -i s0 -s " + (folder_ / "script").string() +
                " >/dev/null 2>&1");
    return "\n" + read_file(folder_ / "lease");
  }

  const std::string busybox;
  NetNamespace host, station;

 private:
  static fs::path make_folder() {
    char path[] = "/tmp/onehop-ipv4-XXXXXX";
    return ::mkdtemp(path);
  }
  const fs::path folder_ = make_folder();
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void test_a_station_gets_a_lease(World& world) {
  world.host.run("ip route add blackhole 192.168.49.128/25");  // another network of this machine
  EXPECT(world.keep().has_value());
  const std::string lease = world.lease();
  EXPECT(has(lease, "\nip=192.168.50.10\n"));
  EXPECT(has(lease, "\nmask=24\n"));
  EXPECT(has(lease, "\nserverid=192.168.50.1\n"));
  EXPECT(has(lease, "\nlease=600\n"));
  EXPECT(!has(lease, "\nrouter=") && !has(lease, "\ndns="));
  world.station.run(world.busybox + " ping -c 1 -W 5 192.168.50.1 >/dev/null");
  EXPECT(has(world.lease(), "\nip=192.168.50.10\n"));
  world.station.run("ip link set s0 address 02:00:00:00:00:99");
  EXPECT(has(world.lease(), "\nip=192.168.50.11\n"));
  EXPECT(!fs::exists("/var/lib/misc/dnsmasq.leases"));
}

void test_d5_what_serves_has_few_privileges(World& world) {
  const auto status_of = [&world](pid_t (*which)()) {
    return read_file("/proc/" + std::to_string(world.host.inside(which)) + "/status");
  };
  const std::string kept = status_of(keeper), serving = status_of(server);
  for (const std::string& status : {kept, serving}) {
    EXPECT(has(status, "\nUid:\t65534\t65534\t65534\t65534\n"));
    EXPECT(has(status, "\nNoNewPrivs:\t1\n"));
  }
  EXPECT(has(kept, "\nCapPrm:\t0000000000001000\n"));     // CAP_NET_ADMIN
  EXPECT(has(serving, "\nCapPrm:\t0000000000001400\n"));  // and CAP_NET_BIND_SERVICE
  int descriptors = 0;
  for ([[maybe_unused]] const auto& entry :
       fs::directory_iterator{"/proc/" + std::to_string(world.host.inside(keeper)) + "/fd"})
    ++descriptors;
  EXPECT(descriptors == 5);  // /dev/null three times, its signals, what dnsmasq says
}

void test_a_second_server_is_named(World& world) {
  const auto again = world.keep();
  EXPECT(again.has_error() && again.error().code == ExitCode::io_unavailable);
  EXPECT(again.has_error() && has(again.error().message(), "another DHCP server has UDP port 67"));
  EXPECT(world.has_address());
}

void test_it_ends_with_its_group(World& world) {
  world.host.inside([] { return ::kill(keeper(), SIGTERM); });
  EXPECT(wait_until([&] { return !world.is_kept(); }));
  EXPECT(!world.has_address());

  EXPECT(world.keep().has_value());
  world.station.run("ip link set s0 down");  // the interface stays, and has no carrier
  EXPECT(wait_until([&] { return !world.is_kept(); }));
  EXPECT(!world.has_address());

  world.station.run("ip link set s0 up");
  EXPECT(world.keep().has_value());
  world.host.run("ip link del g0");
  EXPECT(wait_until([&] { return !world.is_kept(); }));
  world.link();
}

void test_the_server_ends_with_its_keeper(World& world) {
  EXPECT(world.keep().has_value());
  world.host.inside([] { return ::kill(keeper(), SIGKILL); });
  EXPECT(wait_until([&] { return !world.is_kept(); }));
  world.host.run("ip addr flush dev g0 scope global");  // nobody was left to take it back

  EXPECT(world.keep().has_value());
  world.host.inside([] { return ::kill(server(), SIGKILL); });
  EXPECT(wait_until([&] { return !world.is_kept(); }));
  EXPECT(!world.has_address());
}

void test_what_is_missing_is_said(World& world) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    world.host.inside([] {
      if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
      const auto refused = p2p::keep_ipv4("g0");
      const bool is_clear =
          refused.has_error() && has(refused.error().message(), "CAP_NET_BIND_SERVICE");
      ::_exit(is_clear ? static_cast<int>(refused.error().code) : 2);
    });
  }
  int status = 0;
  EXPECT(::waitpid(pid, &status, 0) == pid);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 10);

  for (const char* const net : {"192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8"})
    world.host.run(std::string{"ip route add blackhole "} + net);
  const auto refused = world.keep();
  EXPECT(refused.has_error() && has(refused.error().message(), "ip route show table all"));
  const auto absent = world.host.inside([] { return p2p::keep_ipv4("g7"); });
  EXPECT(absent.has_error() && has(absent.error().message(), "g7: No such device"));
  EXPECT(!world.is_kept());
  EXPECT(!world.has_address());
}

}  // namespace

int main() {
  if (::geteuid() != 0) test::skip("it needs root, for network namespaces");
  if (std::system("test -x /usr/sbin/dnsmasq") != 0) test::skip("dnsmasq-base is not installed");
  World world{find_busybox()};
  test_a_station_gets_a_lease(world);
  test_d5_what_serves_has_few_privileges(world);
  test_a_second_server_is_named(world);
  test_it_ends_with_its_group(world);
  test_the_server_ends_with_its_keeper(world);
  test_what_is_missing_is_said(world);
  return test::failures > 0 ? 1 : 0;
}
