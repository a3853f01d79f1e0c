// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// simulate(): a RunSpec played in ns-3: nodes, flows, a window of measurement, a result. C++17.
#include <algorithm>
#include <ctime>
#include <memory>

#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/double.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "tools/labs/ns3/apps.hpp"
#include "tools/labs/ns3/tcp_c4.hpp"
#include "tools/labs/ns3/wifi_net.hpp"

namespace onehop::sim {

using ns3::Ptr;
using ns3::Seconds;
using ns3::Simulator;

namespace {

constexpr double poll_s = 0.001;  // of what a load has standing before its pacer
constexpr double done_poll_s = 0.0005;

std::string tcp_type(const std::string& variant) {
  if (variant == "newreno") return "ns3::TcpNewReno";
  if (variant == "bbr") return "ns3::TcpBbr";
  if (variant == "vegas") return "ns3::TcpVegas";
  if (variant == "c4") return TcpC4::GetTypeId().GetName();
  return "ns3::TcpCubic";
}

void set_defaults(const RunSpec& spec) {
  ns3::Config::SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(spec.payload_bytes));
  ns3::Config::SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(spec.tcp_buffer_bytes));
  ns3::Config::SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(spec.tcp_buffer_bytes));
  ns3::Config::SetDefault("ns3::TcpSocket::ConnTimeout", ns3::TimeValue(ns3::MilliSeconds(200)));
  ns3::Config::SetDefault("ns3::TcpSocket::DelAckTimeout",
                          ns3::TimeValue(ns3::MilliSeconds(spec.tcp_delayed_ack_ms)));
  ns3::Config::SetDefault("ns3::TcpSocketBase::MinRto",
                          ns3::TimeValue(ns3::MilliSeconds(spec.tcp_min_rto_ms)));
  ns3::Config::SetDefault("ns3::TcpSocketBase::Timestamp",
                          ns3::BooleanValue(spec.has_tcp_timestamps));
  ns3::RngSeedManager::SetSeed(1);
  ns3::RngSeedManager::SetRun(spec.seed);
}

/// Flow: one flow's applications and what they have counted.
struct Flow {
  FlowSpec spec;
  std::unique_ptr<SocketAir> sender_air, receiver_air;
  std::unique_ptr<Transfer> transfer;
  Ptr<TcpSource> tcp;
  Ptr<ByteSink> sink;
  SpreadMeter rtt, wait;
  std::uint64_t bytes_at_open = 0, bytes_at_sample = 0, bytes_in_window = 0;
  double open_s = 0, closed_s = 0;
  std::int64_t airtime_at_open_ns = 0, airtime_ns = 0;
  std::vector<Sample> series;

  [[nodiscard]] std::uint64_t bytes() const {
    if (transfer) return transfer->state().bytes_accepted;
    return sink ? sink->bytes() : 0;
  }
  [[nodiscard]] bool is_done() const {
    if (spec.bytes == 0) return true;
    if (!transfer) return sink && sink->bytes() >= spec.bytes;
    const TransferState state = transfer->state();
    return state.is_complete || !state.failure.empty();
  }
};

class Run {
 public:
  explicit Run(const RunSpec& spec)
      : spec_{spec},
        net_{spec.link, spec.flows.size(), spec.payload_bytes},
        delays_{spec.flows.size()} {
    for (std::uint32_t i = 0; i < net_.size(); ++i) delays_.watch(net_.node(i));
    for (const FlowSpec& flow : spec.flows)
      if (flow.is_primed) net_.prime(flow);
    flows_.resize(spec.flows.size());
    for (std::size_t i = 0; i < flows_.size(); ++i) add(static_cast<std::uint32_t>(i));
  }

  RunResult play() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> links;
    for (const Flow& flow : flows_)
      if (!flow.spec.is_probe())
        links.emplace_back(net_.sender_of(flow.spec), net_.receiver_of(flow.spec));
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    net_.begin_census(links);
    const double start_s = net_.settle_s();
    const double open_s = start_s + spec_.warm_up_s, end_s = open_s + spec_.measure_s;
    for (const Flow& flow : flows_)
      Simulator::Schedule(Seconds(start_s), &WifiNet::begin_loss, &net_, flow.spec);
    Simulator::Schedule(Seconds(start_s), &WifiNet::play_mcs_trace, &net_);
    Simulator::Schedule(Seconds(start_s), &WifiNet::begin_droughts, &net_);
    Simulator::Schedule(Seconds(open_s), &Run::open, this);
    Simulator::Schedule(Seconds(end_s), &Run::close, this);
    Simulator::Schedule(Seconds(start_s), &Run::poll, this);
    if (spec_.stops_when_done) Simulator::Schedule(Seconds(start_s), &Run::stop_when_done, this);
    if (spec_.sample_ms > 0) Simulator::Schedule(Seconds(start_s), &Run::sample, this);
    const std::clock_t began = std::clock();
    Simulator::Run();
    RunResult result = collect();
    result.cpu_s = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    return result;
  }

 private:
  void add(std::uint32_t i);
  void install(Ptr<ns3::Application> app, std::uint32_t node, double start_s, double stop_s);
  void open();
  void close();
  void poll();
  void sample();
  void stop_when_done();
  [[nodiscard]] std::uint64_t udp_sources_at(std::uint32_t node) const {
    return static_cast<std::uint64_t>(std::count_if(
        spec_.flows.begin(), spec_.flows.end(),
        [&](const FlowSpec& flow) { return flow.kind == "udp" && net_.sender_of(flow) == node; }));
  }
  [[nodiscard]] std::int64_t airtime_of(const Flow& flow);
  [[nodiscard]] RunResult collect();
  [[nodiscard]] double start_of(const Flow& flow) const {
    return net_.settle_s() + flow.spec.start_s;
  }

  RunSpec spec_;
  WifiNet net_;
  DelayMeter delays_;
  std::vector<Flow> flows_;
  bool is_open_ = false, is_closed_ = false;
  std::int64_t busy_at_open_ns_ = 0;
  double busy_share_ = 0;
};

void Run::install(Ptr<ns3::Application> app, std::uint32_t node, double start_s, double stop_s) {
  net_.node(node)->AddApplication(app);
  app->SetStartTime(Seconds(start_s));
  if (stop_s > 0) app->SetStopTime(Seconds(stop_s));
}

void Run::add(std::uint32_t i) {
  Flow& flow = flows_[i];
  flow.spec = spec_.flows[i];
  const std::uint32_t from = net_.sender_of(flow.spec), to = net_.receiver_of(flow.spec);
  const double start_s = start_of(flow),
               stop_s = flow.spec.stop_s > 0 ? net_.settle_s() + flow.spec.stop_s : 0;
  const auto there = static_cast<std::uint16_t>(data_port + i),
             back = static_cast<std::uint16_t>(back_port + i);
  const Endpoint sending{back, net_.address(to), there, flow.spec.is_background};
  const Endpoint receiving{there, net_.address(from), back, flow.spec.is_background};
  DeviceMeter& meter = net_.meter(from);
  if (flow.spec.kind == "onehop") {
    flow.sender_air = std::make_unique<SocketAir>(meter, net_.mac(to), i);
    flow.receiver_air = std::make_unique<SocketAir>(net_.meter(to), net_.mac(from), i);
    flow.transfer = make_transfer(flow.spec, spec_.payload_bytes, spec_.seed + i, *flow.sender_air,
                                  *flow.receiver_air);
    install(ns3::CreateObject<EngineApp>(flow.transfer->receiver(), *flow.receiver_air, receiving),
            to, start_s, stop_s);
    const Ptr<EngineApp> sender =
        ns3::CreateObject<EngineApp>(flow.transfer->sender(), *flow.sender_air, sending);
    meter.on_left(i, [sender] { sender->wake(); });
    install(sender, from, start_s, stop_s);
  } else if (flow.spec.kind == "tcp") {
    flow.sink = ns3::CreateObject<ByteSink>(true, there);
    flow.tcp = ns3::CreateObject<TcpSource>(sending, tcp_type(flow.spec.variant),
                                            flow.spec.rate_mbps, flow.spec.bytes);
    install(flow.sink, to, 0, 0);
    install(flow.tcp, from, start_s, stop_s);
  } else if (flow.spec.kind == "udp") {
    flow.sink = ns3::CreateObject<ByteSink>(false, there);
    install(flow.sink, to, 0, 0);
    const std::uint64_t full_bytes = net_.mac_queue_bytes() / udp_sources_at(from);
    install(ns3::CreateObject<UdpSource>(meter, i, sending, spec_.payload_bytes,
                                         flow.spec.rate_mbps, full_bytes, flow.spec.bytes),
            from, start_s, stop_s);
  } else {
    const bool is_tcp = flow.spec.kind == "control";
    install(ns3::CreateObject<PingEcho>(is_tcp, there), to, 0, 0);
    install(ns3::CreateObject<PingSource>(is_tcp, sending, flow.spec.interval_ms, flow.rtt), from,
            start_s, stop_s);
  }
}

std::int64_t Run::airtime_of(const Flow& flow) {
  return net_.meter(net_.sender_of(flow.spec)).airtime_ns(net_.mac(net_.receiver_of(flow.spec)));
}

void Run::open() {
  is_open_ = true;
  delays_.open();
  busy_at_open_ns_ = net_.meter(0).read().busy_ns_total;
  for (Flow& flow : flows_) {
    flow.rtt.clear();
    flow.bytes_at_open = flow.bytes();
    flow.airtime_at_open_ns = airtime_of(flow);
    flow.open_s = Simulator::Now().GetSeconds();
  }
}

void Run::close() {
  if (is_closed_) return;
  is_closed_ = true;
  delays_.close();
  const double now_s = Simulator::Now().GetSeconds();
  if (is_open_) {
    const double span_s = now_s - (net_.settle_s() + spec_.warm_up_s);
    busy_share_ = span_s > 0
                      ? static_cast<double>(net_.meter(0).read().busy_ns_total - busy_at_open_ns_) *
                            1e-9 / span_s
                      : 0;
  }
  for (Flow& flow : flows_) {
    flow.bytes_in_window = flow.bytes() - flow.bytes_at_open;
    flow.airtime_ns = airtime_of(flow) - flow.airtime_at_open_ns;
    flow.closed_s = now_s;
  }
  Simulator::Stop();
}

/// What a load has standing before its pacer, seen each millisecond, as time at its rate.
void Run::poll() {
  const double now_s = Simulator::Now().GetSeconds();
  for (Flow& flow : flows_) {
    if (!is_open_ || flow.spec.rate_mbps <= 0 || (!flow.transfer && !flow.tcp)) continue;
    const double bytes_per_s = flow.spec.rate_mbps * 125'000;
    const double offered = bytes_per_s * (now_s - start_of(flow));
    const auto started = static_cast<double>(flow.transfer ? flow.transfer->state().bytes_started
                                                           : flow.tcp->bytes_started());
    flow.wait.add(static_cast<std::int64_t>((offered - started) / bytes_per_s * 1e9));
  }
  Simulator::Schedule(Seconds(poll_s), &Run::poll, this);
}

void Run::sample() {
  const double span_s = spec_.sample_ms * 1e-3;
  for (Flow& flow : flows_) {
    Sample row;
    row.at_s = Simulator::Now().GetSeconds() - net_.settle_s();
    const std::uint64_t bytes = flow.bytes();
    row.goodput_mbps = static_cast<double>(bytes - flow.bytes_at_sample) * 8e-6 / span_s;
    flow.bytes_at_sample = bytes;
    const LinkReading link = net_.meter(net_.sender_of(flow.spec))
                                 .read(net_.mac(net_.receiver_of(flow.spec)));
    row.phy_mbps = static_cast<double>(link.phy_rate_bps) * 1e-6;
    if (flow.transfer) {
      const TransferState state = flow.transfer->state();
      row.backlog_kb = static_cast<double>(state.backlog_bytes) * 1e-3;
      row.target_kb = static_cast<double>(state.target_bytes) * 1e-3;
      row.rate_mbps = static_cast<double>(state.grant_bytes_per_s) * 8e-6;
    }
    flow.series.push_back(row);
  }
  Simulator::Schedule(Seconds(span_s), &Run::sample, this);
}

void Run::stop_when_done() {
  if (std::all_of(flows_.begin(), flows_.end(), [](const Flow& flow) { return flow.is_done(); }))
    return close();
  Simulator::Schedule(Seconds(done_poll_s), &Run::stop_when_done, this);
}

RunResult Run::collect() {
  RunResult out;
  out.trace_hash = delays_.hash();
  out.delay = delays_.spread();
  out.busy_share = busy_share_;
  std::int64_t airtime_ns = 0;
  for (const Flow& flow : flows_)
    if (!flow.spec.is_probe())
      airtime_ns += flow.airtime_ns;  // it would count its link's air a second time
  std::uint64_t frames = 0, psdus = 0;
  for (std::uint32_t i = 0; i < net_.size(); ++i) {
    out.mac_drops += net_.meter(i).read().mac_failed_total;
    frames += net_.meter(i).data_frames();
    psdus += net_.meter(i).data_psdus();
  }
  out.aggregate_frames = psdus == 0 ? 0 : static_cast<double>(frames) / static_cast<double>(psdus);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const Flow& flow = flows_[i];
    FlowResult row;
    row.name = flow.spec.name;
    const double from_s = std::max(flow.open_s, start_of(flow));
    const double to_s = flow.spec.stop_s > 0
                            ? std::min(flow.closed_s, net_.settle_s() + flow.spec.stop_s)
                            : flow.closed_s;
    row.goodput_mbps =
        to_s > from_s ? static_cast<double>(flow.bytes_in_window) * 8e-6 / (to_s - from_s) : 0;
    row.delay = delays_.spread(i);
    row.wait = flow.wait.spread();
    row.rtt = flow.rtt.spread();
    row.bytes_delivered = flow.bytes();
    row.is_complete = flow.spec.bytes > 0 && flow.is_done();
    row.airtime_share =
        airtime_ns == 0 ? 0
                        : static_cast<double>(flow.airtime_ns) / static_cast<double>(airtime_ns);
    if (flow.sink && row.is_complete) row.complete_s = flow.sink->arrived_s() - start_of(flow);
    if (flow.transfer) {
      const TransferState state = flow.transfer->state();
      row.bytes_wrong = state.bytes_wrong;
      row.is_complete = state.is_complete;
      if (state.is_complete)
        row.complete_s = static_cast<double>(state.complete_ns) * 1e-9 - start_of(flow);
      const auto share = [](std::uint64_t part, std::uint64_t whole) {
        return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
      };
      row.retransmitted_share = share(state.bytes_retransmitted, state.bytes_started);
      row.lost_share = share(state.packets_lost, state.packets_sent);
      row.feedback_frames = state.feedback_frames;
      row.failure = state.failure;
    }
    row.series = flow.series;
    out.flows.push_back(std::move(row));
  }
  return out;
}

}  // namespace

RunResult simulate(const RunSpec& spec) {
  set_defaults(spec);
  Run run{spec};
  RunResult result = run.play();
  Simulator::Destroy();  // disposes of the nodes, whose traces still lead to `run`
  return result;
}

}  // namespace onehop::sim
