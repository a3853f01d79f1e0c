// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/campaign.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <new>
#include <span>
#include <vector>

#include "tools/labs/stress/player.hpp"

namespace onehop::stress {

namespace {

constexpr std::size_t text_bytes_max = 512;
// 100 ms of virtual time take 1 ms: what goes on for longer turns for ever
constexpr time_t schedule_cpu_seconds_max = 30;
constexpr std::uint64_t none = ~std::uint64_t{0};

/// Bench is what one worker writes and its parent reads.
struct Bench {
  Tally tally;
  std::atomic<std::uint64_t> playing{none};  // the index under way
  std::atomic<std::uint64_t> played{0};
  std::uint64_t broken_index = none;  // written before the worker ends, read after
  std::int64_t broken_ns = 0;
  std::array<char, text_bytes_max> broken_text{};
};

/// Shared is the memory of all of them, gone with this object.
class Shared {
 public:
  [[nodiscard]] static Result<Shared> make(unsigned jobs) {
    const std::size_t bytes = sizeof(std::atomic<std::uint64_t>) * 8 + sizeof(Bench) * jobs;
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return errno_error(ExitCode::internal_error, "make memory that the workers share");
    return Shared{static_cast<std::byte*>(memory), bytes, jobs};
  }
  Shared(Shared&& other) noexcept
      : memory_{std::exchange(other.memory_, nullptr)},
        bytes_{other.bytes_},
        benches_{other.benches_} {}
  Shared& operator=(Shared&&) = delete;
  ~Shared() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
  }
  [[nodiscard]] std::span<Bench> benches() const { return benches_; }
  /// broken_at: the lowest broken index so far. Any worker lowers it, each reads it before its next
  /// schedule.
  [[nodiscard]] std::atomic<std::uint64_t>& broken_at() const {
    return *std::launder(reinterpret_cast<std::atomic<std::uint64_t>*>(memory_));
  }

 private:
  static constexpr std::size_t head_bytes = 64;
  Shared(std::byte* memory, std::size_t bytes, unsigned jobs) : memory_{memory}, bytes_{bytes} {
    new (memory) std::atomic<std::uint64_t>{none};
    auto* const first = reinterpret_cast<Bench*>(memory + head_bytes);
    for (unsigned i = 0; i < jobs; ++i) new (first + i) Bench{};
    benches_ = {std::launder(first), jobs};
  }
  std::byte* memory_;
  std::size_t bytes_;
  std::span<Bench> benches_;
};

void lower_to(std::atomic<std::uint64_t>& cell, std::uint64_t value) {
  std::uint64_t now = cell.load(std::memory_order_relaxed);
  while (value < now && !cell.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
  }
}

/// limit_cpu gives the schedule that begins its own CPU time; SIGVTALRM ends a worker whose loop
/// does not.
void limit_cpu() {
  const itimerval limit{.it_interval = {},
                        .it_value = {.tv_sec = schedule_cpu_seconds_max, .tv_usec = 0}};
  (void)::setitimer(ITIMER_VIRTUAL, &limit, nullptr);
}

void work(const CampaignOptions& options, Bench& bench, std::atomic<std::uint64_t>& broken_at,
          std::uint64_t worker) {
  for (std::uint64_t i = worker; i < options.count; i += options.jobs) {
    const std::uint64_t index = options.first + i;
    if (index >= broken_at.load(std::memory_order_relaxed)) return;
    bench.playing.store(index, std::memory_order_relaxed);
    limit_cpu();
    const Broken broken = play_schedule(options.schedule_of(index), bench.tally, options.series);
    bench.played.fetch_add(1, std::memory_order_relaxed);
    if (!broken.is_broken()) continue;
    bench.broken_index = index;
    bench.broken_ns = broken.at().time_since_epoch().count();
    broken.what().copy(bench.broken_text.data(), bench.broken_text.size() - 1);
    lower_to(broken_at, index);
    return;
  }
  bench.playing.store(none, std::memory_order_relaxed);
}

/// One schedule frees what the next one takes: the memory stays with the process, and no page is
/// touched for the first time but in the first schedule.
void keep_memory() {
  (void)::mallopt(M_MMAP_THRESHOLD, 256 << 20);
  (void)::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  (void)::mallopt(M_TOP_PAD, 16 << 20);
}

std::string ended_by(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
    return "an internal check of the program does not hold (printed above)";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM)
    return fmt::format("after {} s of CPU time it goes on: something turns for ever",
                       schedule_cpu_seconds_max);
  if (WIFSIGNALED(status))
    return fmt::format("the program was ended by signal {}", WTERMSIG(status));
  return fmt::format("the worker ended with {}", WEXITSTATUS(status));
}

void watch(const CampaignOptions& options, const Shared& shared, std::vector<pid_t> workers) {
  while (std::any_of(workers.begin(), workers.end(), [](pid_t pid) { return pid > 0; })) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      int status = 0;
      if (workers[i] <= 0 || ::waitpid(workers[i], &status, WNOHANG) != workers[i]) continue;
      workers[i] = 0;
      Bench& bench = shared.benches()[i];
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      bench.broken_index = bench.playing.load(std::memory_order_relaxed);
      ended_by(status).copy(bench.broken_text.data(), bench.broken_text.size() - 1);
      lower_to(shared.broken_at(), bench.broken_index);
    }
    std::uint64_t played = 0;
    for (const Bench& bench : shared.benches())
      played += bench.played.load(std::memory_order_relaxed);
    if (options.on_progress) options.on_progress(played);
    ::usleep(20'000);
  }
}

}  // namespace

Result<std::unique_ptr<CampaignResult>> run_campaign(const CampaignOptions& options) {
  ONEHOP_TRY(shared, Shared::make(options.jobs));
  std::fflush(nullptr);  // or each worker would write what stands in our buffers
  const pid_t parent = ::getpid();
  std::vector<pid_t> workers;
  for (unsigned worker = 0; worker < options.jobs; ++worker) {
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error(ExitCode::internal_error, "start a worker process");
    if (pid == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      keep_memory();
      work(options, shared.benches()[worker], shared.broken_at(), worker);
      if (options.series != nullptr) std::fflush(options.series);
      ::_exit(0);
    }
    workers.push_back(pid);
  }
  watch(options, shared, workers);
  auto result = std::make_unique<CampaignResult>();
  for (const Bench& bench : shared.benches()) {
    result->tally.merge(bench.tally);
    if (bench.broken_index == none ||
        (result->failure && result->failure->index <= bench.broken_index))
      continue;
    result->failure = {.index = bench.broken_index,
                       .at = Nanos{bench.broken_ns},
                       .what = bench.broken_text.data()};
  }
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  result->cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return result;
}

}  // namespace onehop::stress
