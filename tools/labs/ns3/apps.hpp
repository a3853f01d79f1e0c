// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The applications that sit on ns-3 nodes: ours (EngineApp), and those it is compared with. C++17.
//
//   EngineApp ── End (engine/run loops) over SocketAir      UdpSource ─▶ UdpSink
//   TcpSource ─▶ TcpSink                                    PingSource ⇄ PingEcho
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ns3/address.h>
#include <ns3/application.h>
#include <ns3/event-id.h>
#include <ns3/ipv4-address.h>
#include <ns3/sequence-number.h>
#include <ns3/socket.h>

#include "tools/labs/ns3/meters.hpp"
#include "tools/labs/ns3/seam.hpp"

namespace onehop::sim {

/// SocketAir: Air over a connected ns-3 UDP socket; the ledger is the device's.
class SocketAir final : public Air {
 public:
  SocketAir(const DeviceMeter& meter, const ns3::Mac48Address& peer, std::uint32_t flow)
      : meter_{meter}, peer_{peer}, flow_{flow} {}
  void attach(ns3::Ptr<ns3::Socket> socket) { socket_ = socket; }
  int send(const std::byte* frame, std::uint32_t length_bytes) override;
  std::uint64_t left_bytes_total() const override { return meter_.left_bytes(flow_); }
  std::uint64_t refused_frames_total() const override { return meter_.refused_frames(flow_); }
  LinkReading read_link() const override { return meter_.read(peer_); }

 private:
  const DeviceMeter& meter_;
  ns3::Mac48Address peer_;
  std::uint32_t flow_;
  ns3::Ptr<ns3::Socket> socket_;
};

/// Endpoint: where an application's socket is bound and to whom it is connected.
struct Endpoint {
  std::uint16_t port = 0;
  ns3::Ipv4Address peer;
  std::uint16_t peer_port = 0;
  bool is_background = false;
};

/// EngineApp drives one End: it calls turn() at the time the last one asked for, and when a frame
/// arrives that is wanted.
class EngineApp final : public ns3::Application {
 public:
  EngineApp(End& end, SocketAir& air, const Endpoint& endpoint)
      : end_{end}, air_{air}, endpoint_{endpoint} {}

  /// wake brings the next turn forward to now.
  void wake();

 private:
  void StartApplication() override;
  void StopApplication() override;
  void on_receive(ns3::Ptr<ns3::Socket> socket);
  void turn();

  bool is_stopped_ = false;
  End& end_;
  SocketAir& air_;
  Endpoint endpoint_;
  ns3::Ptr<ns3::Socket> socket_;
  ns3::EventId event_;
  std::vector<std::uint8_t> frame_ = std::vector<std::uint8_t>(65'507);  // IPv4's largest
};

/// UdpSource sends packets at a rate, or keeps `full_bytes` of its own in the lower queue (rate 0):
/// the practical line rate.
class UdpSource final : public ns3::Application {
 public:
  UdpSource(const DeviceMeter& meter, std::uint32_t flow, const Endpoint& endpoint,
            std::uint32_t payload_bytes, double rate_mbps, std::uint64_t full_bytes,
            std::uint64_t bytes)
      : meter_{meter},
        flow_{flow},
        endpoint_{endpoint},
        payload_bytes_{payload_bytes},
        rate_mbps_{rate_mbps},
        full_bytes_{full_bytes},
        bytes_left_{bytes == 0 ? ~std::uint64_t{0} : bytes} {}

 private:
  void StartApplication() override;
  void StopApplication() override { event_.Cancel(); }
  void turn();
  const DeviceMeter& meter_;
  std::uint32_t flow_;
  Endpoint endpoint_;
  std::uint32_t payload_bytes_;
  double rate_mbps_;
  std::uint64_t full_bytes_, bytes_left_;
  std::uint64_t handed_bytes_ = 0;  // wire
  ns3::Ptr<ns3::Socket> socket_;
  ns3::EventId event_;
};

/// TcpSource writes as much as the socket takes, or at a rate. `variant` is ns-3's type, such as
/// ns3::TcpCubic.
class TcpSource final : public ns3::Application {
 public:
  TcpSource(const Endpoint& endpoint, std::string variant, double rate_mbps, std::uint64_t bytes)
      : endpoint_{endpoint},
        variant_{std::move(variant)},
        rate_mbps_{rate_mbps},
        bytes_left_{bytes == 0 ? ~std::uint64_t{0} : bytes} {}
  [[nodiscard]] std::uint64_t bytes_started() const { return bytes_started_; }

 private:
  void StartApplication() override;
  void StopApplication() override;
  void grow();
  void on_room(ns3::Ptr<ns3::Socket> socket, std::uint32_t room);
  void write();
  void on_highest(ns3::SequenceNumber32 before, ns3::SequenceNumber32 after);
  Endpoint endpoint_;
  std::string variant_;
  double rate_mbps_;
  std::uint64_t bytes_left_;
  double grown_bytes_ = 0;
  std::uint64_t written_bytes_ = 0, bytes_started_ = 0;
  ns3::Ptr<ns3::Socket> socket_;
  ns3::EventId event_;
  bool is_connected_ = false;
};

/// ByteSink takes UDP datagrams or TCP streams and counts their bytes.
class ByteSink final : public ns3::Application {
 public:
  ByteSink(bool is_tcp, std::uint16_t port) : is_tcp_{is_tcp}, port_{port} {}
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] double arrived_s() const { return arrived_s_; }  ///< of the newest byte

 private:
  void StartApplication() override;
  void StopApplication() override;
  void on_accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
  void on_receive(ns3::Ptr<ns3::Socket> socket);
  bool is_tcp_;
  std::uint16_t port_;
  std::uint64_t bytes_ = 0;
  double arrived_s_ = 0;
  ns3::Ptr<ns3::Socket> socket_;
};

/// PingSource sends a small message each interval to a PingEcho and measures the round trip: a
/// datagram, or a piece of a TCP connection.
class PingSource final : public ns3::Application {
 public:
  PingSource(bool is_tcp, const Endpoint& endpoint, double interval_ms, SpreadMeter& meter)
      : is_tcp_{is_tcp}, endpoint_{endpoint}, interval_ms_{interval_ms}, meter_{meter} {}

 private:
  void StartApplication() override;
  void StopApplication() override { event_.Cancel(); }
  void begin(ns3::Ptr<ns3::Socket> socket);
  void turn();
  void on_receive(ns3::Ptr<ns3::Socket> socket);
  bool is_tcp_;
  Endpoint endpoint_;
  double interval_ms_;
  SpreadMeter& meter_;
  std::vector<std::uint8_t> received_;  // of a message that is not complete
  ns3::Ptr<ns3::Socket> socket_;
  ns3::EventId event_;
};

class PingEcho final : public ns3::Application {
 public:
  PingEcho(bool is_tcp, std::uint16_t port) : is_tcp_{is_tcp}, port_{port} {}

 private:
  void StartApplication() override;
  void StopApplication() override {}
  void on_accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
  void on_receive(ns3::Ptr<ns3::Socket> socket);
  bool is_tcp_;
  std::uint16_t port_;
  ns3::Ptr<ns3::Socket> socket_;
};

}  // namespace onehop::sim
