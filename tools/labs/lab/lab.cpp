// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/lab.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/labs/lab/air/air_process.hpp"
#include "tools/labs/lab/disk.hpp"
#include "tools/labs/lab/process/command_process.hpp"
#include "tools/labs/lab/process/netns.hpp"
#include "tools/labs/lab/trace_player.hpp"

namespace onehop::lab {

namespace {

constexpr const char* state_folder = "/run/onehop-lab";
constexpr std::size_t name_bytes_max = 48;
constexpr std::array<std::string_view, 4> owners{"", "building", "run", "up"};  // as Lab::Owner
// What is left running on the hosts gets this long to end by itself. A receiver needs it to keep
// its journal.
constexpr Nanos end_patience = 3s;
constexpr Nanos end_poll = 20ms;

bool is_good_name(const std::string& name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= name_bytes_max && name.front() != '-' &&
         std::ranges::all_of(name, is_good);
}

std::vector<pid_t> residents(const HostNames& hosts) {
  std::vector<pid_t> all;
  for (const std::string& host : {hosts.a, hosts.m, hosts.b}) {
    const std::vector<pid_t> some = processes_in(host);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::erase(all, ::getpid());
  return all;
}

// A namespace lives as long as a process in it, so they end first.
void end_residents(const HostNames& hosts) {
  for (const pid_t pid : residents(hosts)) ::kill(pid, SIGTERM);
  for (Nanos waited{0}; waited < end_patience && !residents(hosts).empty(); waited += end_poll)
    std::this_thread::sleep_for(end_poll);
  for (const pid_t pid : residents(hosts)) ::kill(pid, SIGKILL);
}

// The control process of a Wi-Fi link reports when it is stopped. One that is gone before has left
// a link that stands still.
bool end_air(const std::string& report) {
  const air::AirEnd end = air::stop_air(report);
  if (end.was_alive)
    std::fprintf(
        stderr, "onehop lab: %s",
        end.report.empty() ? "the airtime control process had to be killed\n" : end.report.c_str());
  return end.was_alive && !end.report.empty();
}

}  // namespace

Result<Lab> Lab::open(const std::string& name) {
  if (!is_good_name(name))
    return Error{ExitCode::usage, "use the lab name '" + name + "'", "it is not a name",
                 "Take a-z, 0-9 and -, at most 48"};
  if (::geteuid() != 0)
    return Error{ExitCode::privilege_missing, "make a lab", "network namespaces need root",
                 "Run it with sudo"};
  if (::mkdir(state_folder, 0755) != 0 && errno != EEXIST)
    return errno_error(ExitCode::local_file_error, std::string{"make "} + state_folder);
  return Lab{name};
}

std::string Lab::path(const char* ending) const {
  return std::string{state_folder} + "/" + name_ + ending;
}

std::string Lab::host_name(Host host) const {
  switch (host) {
    case Host::a: return hosts_.a;
    case Host::m: return hosts_.m;
    case Host::b: return hosts_.b;
    case Host::caller: break;
  }
  return {};
}

Result<LabLock> Lab::lock() const {
  ONEHOP_TRY(held, LabLock::take(state_folder, name_));
  (void)sweep_locks(state_folder);  // ours is held, so it stays
  sweep_dead();
  return std::move(held);
}

void Lab::sweep_dead() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry{state_folder, error}, end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".state") names.push_back(entry->path().stem());
  for (const std::string& name : names) {
    if (name == name_ || !is_good_name(name)) continue;
    const Result<LabLock> held = LabLock::take(state_folder, name);
    if (held.has_error()) continue;  // of the living
    Lab dead{name};
    dead.load();
    if (dead.state_.owner != Owner::run && dead.state_.owner != Owner::building) continue;
    std::fprintf(stderr, "onehop lab: removing what a lab %s that was killed has left\n",
                 name.c_str());
    if (const auto removed = dead.remove(); removed.has_error())
      std::fprintf(stderr, "onehop lab: %s\n", removed.error().message().c_str());
    dead.drop(held.value());
  }
}

// A lab that is up or half removed keeps the file.
void Lab::drop(const LabLock& held) const {
  if (state_.owner == Owner::none) held.remove();
}

void Lab::load() {
  state_ = {};
  std::ifstream file{path(".state")};
  for (std::string line; std::getline(file, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "owner") {
      const auto at = std::ranges::find(owners, value);
      state_.owner = at == owners.end() ? Owner::building : static_cast<Owner>(at - owners.begin());
    }
    if (key == "profile") state_.profile = value;
    if (key == "disk") state_.disk = value;
    if (key == "wifi") state_.is_wifi = value == "1";
    if (key == "disk_pid")
      state_.disk_pid = static_cast<pid_t>(std::strtol(value.c_str(), nullptr, 10));
  }
}

Result<void> Lab::save() const {
  std::ofstream file{path(".state"), std::ios::trunc};
  file << "owner=" << owners.at(static_cast<std::size_t>(state_.owner))
       << "\nprofile=" << state_.profile << "\ndisk=" << state_.disk
       << "\ndisk_pid=" << state_.disk_pid << "\nwifi=" << state_.is_wifi << '\n';
  if (!file.flush()) return errno_error(ExitCode::local_file_error, "write " + path(".state"));
  return success();
}

Result<void> Lab::build(const Profile& profile, Owner owner) {
  load();
  if (state_.owner == Owner::up)
    return Error{ExitCode::refused_by_peer, "build the lab " + name_,
                 "it is up already (profile " + state_.profile + ")",
                 "onehop lab down --name " + name_};
  const bool has_remains = state_.owner != Owner::none || has_netns(hosts_.a) ||
                           has_netns(hosts_.m) || has_netns(hosts_.b);
  if (has_remains) {
    std::fprintf(stderr, "onehop lab: removing what a lab %s that was killed has left\n",
                 name_.c_str());
    ONEHOP_TRYV(remove());
  }
  // The state comes first: whatever happens from here on, down finds it.
  state_ = {.owner = Owner::building,
            .profile = profile.name,
            .disk = {},
            .disk_pid = 0,
            .is_wifi = profile.wifi.has_value()};
  if (profile.disk) state_.disk = disk_base(*profile.disk, name_);
  ONEHOP_TRYV(save());
  Result<void> built = build_link(hosts_, profile);
  if (built.has_value() && profile.wifi) built = start_wifi(profile, owner);
  if (built.has_value() && profile.disk) {
    Result<pid_t> disk = start_disk(*profile.disk, state_.disk);
    if (disk.has_value()) state_.disk_pid = disk.value();
    if (disk.has_error()) built = disk.error();
  }
  if (built.has_value()) {
    state_.owner = owner;
    built = save();
  }
  if (built.has_error()) (void)remove();  // the first error is the one to read
  return built;
}

Result<void> Lab::start_wifi(const Profile& profile, Owner owner) const {
  air::PlayerOptions player{.profile = *profile.wifi, .mtu_bytes = profile.mtu_bytes};
  const air::Place a{hosts_.a, lower_a}, m{hosts_.m, middle_a};
  player.directions = {air::TapOptions{a, m}, air::TapOptions{m, a}};
  player.facts_paths = {path(".a.facts"), path(".b.facts")};
  return air::start_air(
      {.player = player, .report = path(".air"), .ends_with_us = owner == Owner::run});
}

Result<void> Lab::remove() {
  end_residents(hosts_);
  is_air_lost_ = state_.is_wifi && !end_air(path(".air"));
  Result<void> removed = success();
  if (!state_.disk.empty()) removed = stop_disk(state_.disk, state_.disk_pid);
  const Result<void> torn_down = tear_down_link(hosts_);
  if (torn_down.has_error()) return torn_down;
  if (removed.has_error()) return removed;
  state_ = {};
  (void)::unlink(path(".state").c_str());
  return success();
}

Result<void> Lab::up(const Profile& profile) {
  if (!profile.trace.empty())
    return Error{ExitCode::usage, "bring up the profile " + profile.name,
                 "its rate changes, which needs a running program",
                 "onehop lab run --profile " + profile.name + " -- COMMAND"};
  const Result<LabLock> held = lock();
  if (held.has_error()) return held.error();
  const Result<void> built = build(profile, Owner::up);
  drop(held.value());
  return built;
}

Result<void> Lab::down() {
  const Result<LabLock> held = lock();
  if (held.has_error()) return held.error();
  load();
  const Result<void> removed = remove();
  drop(held.value());
  if (is_air_lost_)
    std::fprintf(stderr,
                 "onehop lab: the airtime control process had died: nothing passed from then on\n");
  return removed;
}

void Lab::set_environment() const {
  ::setenv("ONEHOP_LAB_NAME", name_.c_str(), 1);
  ::setenv("ONEHOP_LAB_PROFILE", state_.profile.c_str(), 1);
  ::setenv("ONEHOP_LAB_A4", address_a4, 1);
  ::setenv("ONEHOP_LAB_B4", address_b4, 1);
  ::setenv("ONEHOP_LAB_A6", address_a6, 1);
  ::setenv("ONEHOP_LAB_B6", address_b6, 1);
  if (state_.is_wifi) {
    ::setenv("ONEHOP_LAB_FACTS_A", path(".a.facts").c_str(), 1);
    ::setenv("ONEHOP_LAB_FACTS_B", path(".b.facts").c_str(), 1);
  }
  ::setenv("ONEHOP_STATE_DIR", "", 0);  // what one run in a lab reached is nothing to the next one
  if (state_.disk.empty())
    ::unsetenv("ONEHOP_LAB_DISK");
  else
    ::setenv("ONEHOP_LAB_DISK", disk_mount(state_.disk).c_str(), 1);
}

Result<int> Lab::run(const Profile& profile, Host host, const std::vector<std::string>& command,
                     RateLog* log) {
  return run_while(
      profile,
      [&](const CommandSignals& signals) {
        return CommandProcess::start(host_name(host), command, signals);
      },
      log);
}

Result<int> Lab::run(const Profile& profile, const std::function<int()>& body) {
  return run_while(
      profile,
      [&](const CommandSignals& signals) { return CommandProcess::start_function(body, signals); },
      nullptr);
}

Result<int> Lab::run_while(const Profile& profile, const Start& start, RateLog* log) {
  // Signals wait from here on, so that none of them can interrupt the building or the removal half
  // way.
  const CommandSignals signals;
  const Result<LabLock> held = lock();
  if (held.has_error()) return held.error();
  if (Result<void> built = build(profile, Owner::run); built.has_error()) {
    drop(held.value());
    return built.error();
  }
  set_environment();
  Result<int> code = 0;
  Result<CommandProcess> process = start(signals);
  if (process.has_value()) {
    TracePlayer trace{hosts_, profile, log};
    code = process.value().wait(signals);
    if (const auto error = trace.stop(); error) code = *error;
  } else {
    code = process.error();
  }
  const Result<void> removed = remove();
  drop(held.value());
  if (removed.has_error() && code.has_value()) return removed.error();
  if (is_air_lost_ && code.has_value())
    return Error{ExitCode::internal_error, "play the Wi-Fi link of the lab " + name_,
                 "its control process died, and nothing passed from then on", ""};
  return code;
}

Error Lab::exec(Host host, const std::vector<std::string>& command) {
  load();
  set_environment();
  const Result<void> moved = become_host(host_name(host));
  if (moved.has_error()) return moved.error();
  return exec_command(command);
}

}  // namespace onehop::lab
