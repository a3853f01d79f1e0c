// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/bench_command.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tools/labs/bench/output.hpp"
#include "tools/labs/bench/part_points.hpp"
#include "tools/labs/bench/points.hpp"
#if ONEHOP_HAS_LAB
#include "tools/labs/bench/ends/link_points.hpp"
#include "tools/labs/lab/lab.hpp"
#include "tools/labs/lab/process/command_process.hpp"
#include "tools/labs/lab/profile.hpp"
#endif

namespace onehop::bench {

namespace {

/// run_points measures and tells; the exit code.
ExitCode run_points(const BenchOptions& options, Output& output,
                    Result<std::vector<Point>> points) {
  const auto refuse = [&](const Error& error) {
    output.error(error);
    output.end(error.code);
    return error.code;
  };
  if (points.has_error()) return refuse(points.error());
  std::vector<std::string> names;
  for (const Point& point : points.value()) names.push_back(point.name);
  if (const auto base = base_of(options, names); base.has_error())
    return refuse(base.error());  // before an hour is spent
  output.start();
  const auto results = run_rounds(
      points.value(), options.rounds,
      [&](int round, const Point& point) -> OnInterval {
        return [&output, round, name = point.name](const Interval& interval) {
          output.interval(round, name, interval);
        };
      },
      [&](int round, const PointResult& point) { output.sample(round, point); });
  if (results.has_error()) return refuse(results.error());
  output.results(results.value());
  output.end(ExitCode::done);
  return ExitCode::done;
}

#if ONEHOP_HAS_LAB

/// Scratch: the folder of source and sink files, for as long as the bench takes.
class Scratch {
 public:
  static Result<Scratch> make(const BenchOptions& options) {
    Scratch scratch;
    const bool has_source = options.part == Part::loop && options.source == "file";
    if (!has_source && options.sink == "memory") return scratch;
    std::string path = options.folder + "/onehop-bench-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return errno_error(ExitCode::local_file_error, "make a folder in " + options.folder,
                         "Name another with --dir");
    scratch.path_ = path;
    std::error_code error;
    std::filesystem::create_directory(path + "/sink", error);
    if (error) return Error{ExitCode::local_file_error, "make " + path + "/sink", error.message()};
    if (has_source) {
      ONEHOP_TRYV(fill(path + "/source", options.bytes));
    }
    return scratch;
  }
  Scratch(Scratch&& other) noexcept : path_{std::exchange(other.path_, {})} {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Scratch() = default;
  /// Incompressible, and repeated every 16 MiB, which nothing measured here makes use of.
  static Result<void> fill(const std::string& path, std::uint64_t bytes) {
    constexpr std::size_t piece_bytes = 16 << 20;
    std::vector<char> piece(std::min<std::uint64_t>(piece_bytes, bytes));
    std::ifstream{"/dev/urandom"}.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    std::ofstream file{path, std::ios::binary};
    for (std::uint64_t left = bytes; left > 0 && file;) {
      const std::uint64_t now = std::min<std::uint64_t>(left, piece.size());
      file.write(piece.data(), static_cast<std::streamsize>(now));
      left -= now;
    }
    if (file.flush()) return success();
    return errno_error(ExitCode::local_file_error, "write " + path,
                       "Name a folder with more room with --dir, or a smaller amount with -n");
  }
  std::string path_;
};

/// points_code is what a child process ends with.
int points_code(const BenchOptions& options, Output& output, Result<std::vector<Point>> points) {
  const ExitCode ended = run_points(options, output, std::move(points));
  std::cout.flush();
  return static_cast<int>(ended);
}

Result<ExitCode> ended_with(int code) {
  constexpr int first_signal = 128;
  if (code > first_signal)
    return Error{ExitCode::interrupted, "bench", "interrupted", "What it made is removed"};
  return static_cast<ExitCode>(code);
}

Result<ExitCode> run_in_lab(const BenchOptions& options, Output& output) {
  ONEHOP_TRY(profile, lab::load_profile(options.profile));
  if (options.mtu_bytes != 0) profile.mtu_bytes = options.mtu_bytes;
  ONEHOP_TRY(lab, lab::Lab::open("bench" + std::to_string(::getpid())));
  ONEHOP_TRY(scratch, Scratch::make(options));
  const Place place{.hosts = lab::HostNames{"bench" + std::to_string(::getpid())},
                    .mtu_bytes = profile.mtu_bytes,
                    .folder = scratch.path()};
  ONEHOP_TRY(code, lab.run(profile, [&] {
    return points_code(options, output, link_points(options, place));
  }));
  return ended_with(code);
}

/// run_own_end: the other end is on another host.
Result<ExitCode> run_own_end(const BenchOptions& options, Output& output) {
  const lab::CommandSignals signals;  // an interrupt ends the child, and then the files go
  ONEHOP_TRY(scratch, Scratch::make(options));
  const Place place{.hosts = lab::HostNames{""}, .folder = scratch.path()};
  ONEHOP_TRY(process, lab::CommandProcess::start_function(
                          [&] { return points_code(options, output, host_points(options, place)); },
                          signals));
  return ended_with(process.wait(signals));
}

#else

Result<ExitCode> run_in_lab(const BenchOptions& options, Output&) {
  return Error{ExitCode::io_unavailable, std::string{"bench "} + name_of(options.part),
               "this build has no lab (libbpf, clang, tomlplusplus or CLI11 was missing)",
               "tools/bootstrap installs them; bench aead, digest, file, law and ring need no lab"};
}
Result<ExitCode> run_own_end(const BenchOptions& options, Output& output) {
  return run_in_lab(options, output);
}

#endif

}  // namespace

ExitCode bench_command(BenchOptions& options) {
  Output output{options};
  const auto refuse = [&](const Error& error) {
    output.error(error);
    return error.code;
  };
  if (const auto checked = check_options(options); checked.has_error())
    return refuse(checked.error());
  const bool has_ends =
      options.part == Part::loop || options.part == Part::serve || options.part == Part::port;
  if (!has_ends) return run_points(options, output, part_points(options));
  const bool is_between_hosts = options.part == Part::serve || !options.to.empty();
  const auto ended = is_between_hosts ? run_own_end(options, output) : run_in_lab(options, output);
  return ended.has_value() ? ended.value() : refuse(ended.error());
}

}  // namespace onehop::bench
