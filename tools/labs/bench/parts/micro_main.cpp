// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-micro: the parts that run on one thread, under Google Benchmark, for its statistics,
// filters and output formats. The work is that of `onehop bench aead|digest|law|ring`, the same
// objects.
#include <benchmark/benchmark.h>

#include <cstdio>

#include "tools/labs/bench/parts/micro.hpp"

namespace onehop::bench {
namespace {

void time(benchmark::State& state, Work& work) {
  for (auto _ : state) work.run();
  const auto runs = static_cast<std::int64_t>(state.iterations());
  state.SetItemsProcessed(runs * static_cast<std::int64_t>(work.items_per_run()));
  if (work.bytes_per_run() > 0)
    state.SetBytesProcessed(runs * static_cast<std::int64_t>(work.bytes_per_run()));
}

void add(const std::string& name, std::shared_ptr<Work> work) {
  benchmark::RegisterBenchmark(
      name.c_str(), [work = std::move(work)](benchmark::State& state) { time(state, *work); });
}

int run(int argc, char** argv) {
  for (const crypto::AeadBackend backend :
       {crypto::AeadBackend::ipsec_mb, crypto::AeadBackend::openssl,
        crypto::AeadBackend::chacha20}) {
    if (!crypto::is_available(backend)) continue;
    for (const std::size_t frame_bytes :
         {std::size_t{128}, std::size_t{1472}, std::size_t{3472}, std::size_t{8972}}) {
      const std::string name =
          std::string{crypto::name(backend)} + "/" + std::to_string(frame_bytes);
      add("seal/" + name, make_seal(backend, frame_bytes));
      add("open/" + name, make_open(backend, frame_bytes));
    }
  }
  add("digest/xxh3", make_digest(crypto::DigestKind::xxh3));
  add("digest/sha256", make_digest(crypto::DigestKind::sha256));
  for (const char* law : {"auto", "safe-range", "wdtcp", "cupid", "fixed:300Mbit"}) {
    auto work = make_law_step(law);
    if (work.has_value())
      add(std::string{"law/"} + law, std::move(work).value());
    else
      std::fprintf(stderr, "onehop-micro: %s\n", work.error().message().c_str());
  }
  add("ring/spsc", make_ring());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return static_cast<int>(ExitCode::usage);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace onehop::bench

int main(int argc, char** argv) { return onehop::bench::run(argc, argv); }
