// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>

#include "engine/base/fd.hpp"

namespace onehop::sim {

using nlohmann::json;

namespace {

json spread_json(const Spread& s) {
  return {{"mean_us", s.mean}, {"p50_us", s.p50}, {"p95_us", s.p95},
          {"p99_us", s.p99},   {"max_us", s.max}, {"count", s.count}};
}
Spread spread_from(const json& j) {
  Spread s;
  j.at("mean_us").get_to(s.mean), j.at("p50_us").get_to(s.p50), j.at("p95_us").get_to(s.p95),
      j.at("p99_us").get_to(s.p99);
  j.at("max_us").get_to(s.max), j.at("count").get_to(s.count);
  return s;
}

json flow_json(const FlowResult& f) {
  json series = json::array();
  for (const Sample& s : f.series)
    series.push_back({s.at_s, s.goodput_mbps, s.backlog_kb, s.target_kb, s.rate_mbps,
                      s.phy_mbps});
  return {{"name", f.name},
          {"goodput_mbps", f.goodput_mbps},
          {"delay", spread_json(f.delay)},
          {"wait", spread_json(f.wait)},
          {"rtt", spread_json(f.rtt)},
          {"bytes_delivered", f.bytes_delivered},
          {"bytes_wrong", f.bytes_wrong},
          {"is_complete", f.is_complete},
          {"complete_s", f.complete_s},
          {"retransmitted_share", f.retransmitted_share},
          {"lost_share", f.lost_share},
          {"airtime_share", f.airtime_share},
          {"feedback_frames", f.feedback_frames},
          {"failure", f.failure},
          {"series", series}};
}
FlowResult flow_from(const json& j) {
  FlowResult f;
  j.at("name").get_to(f.name), j.at("goodput_mbps").get_to(f.goodput_mbps),
      j.at("bytes_delivered").get_to(f.bytes_delivered);
  j.at("bytes_wrong").get_to(f.bytes_wrong), j.at("is_complete").get_to(f.is_complete),
      j.at("complete_s").get_to(f.complete_s);
  j.at("retransmitted_share").get_to(f.retransmitted_share),
      j.at("lost_share").get_to(f.lost_share);
  j.at("airtime_share").get_to(f.airtime_share), j.at("feedback_frames").get_to(f.feedback_frames);
  j.at("failure").get_to(f.failure);
  f.delay = spread_from(j.at("delay")), f.wait = spread_from(j.at("wait")),
  f.rtt = spread_from(j.at("rtt"));
  for (const json& s : j.at("series"))
    f.series.push_back({s[0].get<double>(), s[1].get<double>(), s[2].get<double>(),
                        s[3].get<double>(), s[4].get<double>(), s[5].get<double>()});
  return f;
}

/// Child: one point being played.
struct Child {
  std::size_t index = 0;
  pid_t pid = -1;
  Fd out;
  std::string text;
};

[[noreturn]] void be_child(const RunSpec& spec, int out) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);  // an interrupted run leaves nothing behind
  for (const int signal : {SIGABRT, SIGSEGV})
    std::signal(signal, SIG_DFL);  // ns-3 ends with these; no handler of the parent's
  std::string text;
  try {
    text = to_json(simulate(spec)).dump();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(out, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) _exit(1);
    done += static_cast<std::size_t>(count);
  }
  _exit(0);
}

Result<Child> start(std::size_t index, const RunSpec& spec) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return errno_error(ExitCode::internal_error, "make a pipe for a point");
  Fd reading{ends[0]}, writing{ends[1]};
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, "start a process for a point");
  if (pid == 0) be_child(spec, writing.get());
  Child child;
  child.index = index;
  child.pid = pid;
  child.out = std::move(reading);
  return child;
}

Played finish(Child& child) {
  Played played;
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    played.failure = fmt::format("ended by signal {}", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    played.failure = fmt::format("ended with {}", WEXITSTATUS(status));
  } else {
    const json value = json::parse(child.text, nullptr, false);
    if (value.is_discarded())
      played.failure = "its result does not parse";
    else
      played.result = from_json(value);
  }
  return played;
}

/// True: the child has closed its end.
bool take(Child& child) {
  char buffer[65'536];
  const ssize_t count = ::read(child.out.get(), buffer, sizeof buffer);
  if (count > 0) child.text.append(buffer, static_cast<std::size_t>(count));
  return count == 0 || (count < 0 && errno != EINTR);
}

}  // namespace

json to_json(const RunResult& r) {
  json flows = json::array();
  for (const FlowResult& flow : r.flows) flows.push_back(flow_json(flow));
  return {{"flows", flows},
          {"delay", spread_json(r.delay)},
          {"busy_share", r.busy_share},
          {"aggregate_frames", r.aggregate_frames},
          {"mac_drops", r.mac_drops},
          {"trace_hash", r.trace_hash},
          {"cpu_s", r.cpu_s}};
}

RunResult from_json(const json& j) {
  RunResult r;
  for (const json& flow : j.at("flows")) r.flows.push_back(flow_from(flow));
  r.delay = spread_from(j.at("delay"));
  j.at("busy_share").get_to(r.busy_share), j.at("aggregate_frames").get_to(r.aggregate_frames);
  j.at("mac_drops").get_to(r.mac_drops), j.at("trace_hash").get_to(r.trace_hash),
      j.at("cpu_s").get_to(r.cpu_s);
  return r;
}

Result<std::vector<Played>> play_all(const std::vector<RunSpec>& specs, std::size_t jobs,
                                     const std::function<void(std::size_t, const Played&)>& done) {
  std::vector<Played> out(specs.size());
  std::vector<Child> children;
  std::size_t next = 0;
  while (next < specs.size() || !children.empty()) {
    while (next < specs.size() && children.size() < jobs) {
      ONEHOP_TRY(child, start(next, specs[next]));
      children.push_back(std::move(child));
      ++next;
    }
    std::vector<pollfd> waits;
    for (const Child& child : children) waits.push_back({child.out.get(), POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR)
      return errno_error(ExitCode::internal_error, "wait for a point");
    for (std::size_t i = children.size(); i-- > 0;) {
      if ((waits[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || !take(children[i])) continue;
      Played& played = out[children[i].index] = finish(children[i]);
      done(children[i].index, played);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return out;
}

}  // namespace onehop::sim
