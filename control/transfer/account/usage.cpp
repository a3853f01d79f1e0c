// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/account/usage.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <sstream>

#include "engine/base/system/text_file.hpp"

namespace onehop::transfer {

namespace {

double ticks_to_seconds(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double seconds_of(const timeval& tv) {
  return static_cast<double>(tv.tv_sec) + static_cast<double>(tv.tv_usec) / 1e6;
}

/// Time of all cores that was not idle (proc(5), /proc/stat), from some moment on. The kernel times
/// idle exactly; its other columns are samples of the tick, which stands still while an idle core
/// serves interrupts.
std::optional<double> read_busy() {
  TextFile file{"/proc/stat"};
  std::string name;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> iowait)) return std::nullopt;
  const double now =
      std::chrono::duration<double>{std::chrono::steady_clock::now().time_since_epoch()}.count();
  return now * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)) -
         ticks_to_seconds(idle + iowait);
}

std::optional<double> difference(std::optional<double> start, std::optional<double> end) {
  return start && end ? std::optional{*end - *start} : std::nullopt;
}

std::uint64_t status_field(const std::string& path, std::string_view key) {
  TextFile file{path};
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const auto digits = line.find_first_of("0123456789");
    if (digits == std::string::npos) return 0;
    return std::stoull(line.substr(digits));
  }
  return 0;
}

/// The folders below a folder of /proc. (An iterator of std::filesystem ends the program where
/// memory is refused.)
std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream{::opendir(folder.c_str()), ::closedir};
  for (const dirent* entry = nullptr; stream != nullptr && (entry = ::readdir(stream.get()));)
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
      found.push_back(folder + "/" + entry->d_name);
  return found;
}

}  // namespace

void UsageMeter::open_softirq() {
  if (softirq_pids_) return;
  softirq_pids_.emplace();
  const auto comm_of = [](int pid) {
    std::string text;
    TextFile comm{"/proc/" + std::to_string(pid) + "/comm"};
    (void)std::getline(comm, text);
    return text;
  };
  // They are children of the kernel's thread 2, which another PID namespace has not, and among the
  // first: not each process of the machine is opened.
  if (comm_of(2) == "kthreadd") {
    std::vector<int> pids;
    for (const std::string& process : folders_in("/proc")) {
      const std::string name = process.substr(process.rfind('/') + 1);
      int pid = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc{})
        pids.push_back(pid);
    }
    std::ranges::sort(pids);
    const auto cpus = static_cast<std::size_t>(std::max(::get_nprocs(), 1));
    for (const int pid : pids) {
      if (comm_of(pid).starts_with("ksoftirqd/")) softirq_pids_->push_back(pid);
      if (softirq_pids_->size() == cpus) break;
    }
  }
  start_.softirq = read_softirq();
}

std::optional<double> UsageMeter::read_softirq() const {
  if (!softirq_pids_ || softirq_pids_->empty()) return std::nullopt;
  std::uint64_t ticks = 0;
  for (const int pid : *softirq_pids_) {
    TextFile file{"/proc/" + std::to_string(pid) + "/stat"};
    std::string text;
    if (!std::getline(file, text)) return std::nullopt;
    // After the command name in brackets: state is field 3, utime 14, stime 15.
    std::istringstream rest{text.substr(text.rfind(')') + 2)};
    std::string field;
    for (int i = 3; i < 14; ++i) rest >> field;
    std::uint64_t utime = 0, stime = 0;
    if (!(rest >> utime >> stime)) return std::nullopt;
    ticks += utime + stime;
  }
  return ticks_to_seconds(ticks);
}

void UsageMeter::open_span() { start_.busy = read_busy(); }

void UsageMeter::close_span() { end_ = {read_softirq(), read_busy()}; }

double UsageMeter::cpu_seconds() {
  rusage self{}, children{};
  ::getrusage(RUSAGE_SELF, &self);
  ::getrusage(RUSAGE_CHILDREN, &children);
  return seconds_of(self.ru_utime) + seconds_of(self.ru_stime) + seconds_of(children.ru_utime) +
         seconds_of(children.ru_stime);
}

std::optional<double> UsageMeter::softirq_seconds() const {
  return difference(start_.softirq, end_.softirq);
}
std::optional<double> UsageMeter::system_busy_seconds() const {
  return difference(start_.busy, end_.busy);
}

std::uint64_t UsageMeter::rss_bytes_max() {
  return status_field("/proc/self/status", "VmHWM:") * 1024;
}

std::uint64_t UsageMeter::voluntary_switches_total() {
  rusage self{};
  ::getrusage(RUSAGE_SELF, &self);
  return static_cast<std::uint64_t>(self.ru_nvcsw);
}

std::map<std::string, double> UsageMeter::thread_cpu_seconds() {
  std::map<std::string, double> seconds;
  // The main thread's, and that of threads without a name: what the program is called.
  std::string own;
  TextFile{"/proc/self/comm"} >> own;
  for (const std::string& task : folders_in("/proc/self/task")) {
    std::string name;
    std::uint64_t run_ns = 0;
    TextFile{task + "/comm"} >> name;
    if (!(TextFile{task + "/schedstat"} >> run_ns)) continue;  // it has just ended
    constexpr std::string_view prefix = "onehop-";
    seconds[name.starts_with(prefix) && name != own ? name.substr(prefix.size()) : "plane"] +=
        static_cast<double>(run_ns) / 1e9;
  }
  return seconds;
}

}  // namespace onehop::transfer
