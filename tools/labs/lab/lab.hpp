// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Lab: one lab by its name. It holds the lock while it works, and knows from a state file what
// there is to remove, also after a crash. Called by one thread; `run` starts one more for a trace.
//
//   /run/onehop-lab/NAME.lock      held by up, down and run; goes with the lab (lab_lock.hpp)
//   /run/onehop-lab/NAME.state     what exists: owner, profile, disk
//   /run/onehop-lab/NAME.air       of a Wi-Fi link: the control process, then its report
//   /run/onehop-lab/NAME.a.facts   where it publishes the link's facts for host a
//   /run/onehop-lab/NAME.b.facts   likewise for b
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "tools/labs/lab/lab_lock.hpp"
#include "tools/labs/lab/link.hpp"
#include "tools/labs/lab/process/command_process.hpp"
#include "tools/labs/lab/profile.hpp"
#include "tools/labs/lab/rate_log.hpp"

namespace onehop::lab {

/// Host says where a command runs: on a host of the lab, in its middle, or in the namespace of the
/// caller.
enum class Host : std::uint8_t { a, m, b, caller };

class Lab {
 public:
  /// open checks the name and the privilege. It changes nothing.
  [[nodiscard]] static Result<Lab> open(const std::string& name);

  /// up builds a lab that stays. A profile with a trace needs run().
  [[nodiscard]] Result<void> up(const Profile& profile);

  /// down removes the lab, its processes and its disk, and whatever a crashed one left. None there
  /// is no error.
  [[nodiscard]] Result<void> down();

  /// run builds the lab, runs `command` on a host, removes the lab, and returns the command's exit
  /// code (128 + signal where one ended it). SIGINT, SIGTERM and SIGHUP end the command and then
  /// the lab. The process must have one thread. `log`, which may be null, is told each rate of the
  /// link.
  [[nodiscard]] Result<int> run(const Profile& profile, Host host,
                                const std::vector<std::string>& command, RateLog* log);

  /// run with a function of this program, which a child process calls in the caller's namespace.
  /// Its value is the exit code.
  [[nodiscard]] Result<int> run(const Profile& profile, const std::function<int()>& body);

  /// exec becomes `command` on a host of a lab that is up. It returns only where that fails.
  [[nodiscard]] Error exec(Host host, const std::vector<std::string>& command);

 private:
  using Start = std::function<Result<CommandProcess>(const CommandSignals&)>;
  [[nodiscard]] Result<int> run_while(const Profile& profile, const Start& start, RateLog* log);
  enum class Owner : std::uint8_t { none, building, run, up };
  struct State {
    Owner owner = Owner::none;
    std::string profile;
    std::string disk;  ///< base folder of the disk, empty: none
    pid_t disk_pid = 0;
    bool is_wifi = false;  ///< there is a control process
  };

  /// sweep_dead removes the labs of other names that `run` made and whose maker is dead: nobody
  /// holds their lock, which goes with a process. Those that `up` made stay.
  void sweep_dead() const;

  explicit Lab(std::string name) : name_{std::move(name)}, hosts_{name_} {}
  [[nodiscard]] Result<LabLock> lock() const;  ///< and removes those that killed labs have left
  /// drop removes the lock's file where nothing of the lab is left.
  void drop(const LabLock& held) const;
  [[nodiscard]] Result<void> build(const Profile& profile, Owner owner);
  [[nodiscard]] Result<void> start_wifi(const Profile& profile, Owner owner) const;
  [[nodiscard]] Result<void> remove();
  [[nodiscard]] Result<void> save() const;
  void load();
  void set_environment() const;
  [[nodiscard]] std::string path(const char* ending) const;
  [[nodiscard]] std::string host_name(Host host) const;  ///< of its namespace; empty: the caller's

  std::string name_;
  HostNames hosts_;
  State state_;
  bool is_air_lost_ = false;  ///< remove() found the control process of a Wi-Fi link gone
};

}  // namespace onehop::lab
