// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/apps.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <ns3/inet-socket-address.h>
#include <ns3/node.h>
#include <ns3/packet.h>
#include <ns3/simulator.h>
#include <ns3/tcp-l4-protocol.h>
#include <ns3/tcp-socket-base.h>
#include <ns3/tcp-socket-factory.h>
#include <ns3/udp-socket-factory.h>

namespace onehop::sim {

using ns3::MakeCallback;
using ns3::NanoSeconds;
using ns3::Ptr;
using ns3::Simulator;

namespace {

// Of a saturating source: 23 frames at 1.1 Gbit/s, far less than the queue
constexpr std::int64_t refill_ns = 250'000;
constexpr std::uint32_t write_bytes_max = 65'536;
constexpr std::int64_t grow_ns = 1'000'000;  // a TCP load grows in steps of 1 ms
constexpr std::uint32_t ping_bytes = 56;     // as ping's default payload

Ptr<ns3::Socket> udp_socket(Ptr<ns3::Node> node, const Endpoint& endpoint) {
  const Ptr<ns3::Socket> socket =
      ns3::Socket::CreateSocket(node, ns3::UdpSocketFactory::GetTypeId());
  socket->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), endpoint.port));
  if (endpoint.peer_port != 0)
    socket->Connect(ns3::InetSocketAddress(endpoint.peer, endpoint.peer_port));
  if (endpoint.is_background) socket->SetPriority(background_priority);
  return socket;
}

}  // namespace

// --- ours

int SocketAir::send(const std::byte* frame, std::uint32_t length_bytes) {
  const Ptr<ns3::Packet> packet =
      ns3::Create<ns3::Packet>(reinterpret_cast<const std::uint8_t*>(frame), length_bytes);
  packet->AddPacketTag(FlowTag(flow_));
  return socket_->Send(packet) < 0 ? ENOBUFS : 0;
}

void EngineApp::StartApplication() {
  socket_ = udp_socket(GetNode(), endpoint_);
  air_.attach(socket_);
  socket_->SetRecvCallback(MakeCallback(&EngineApp::on_receive, this));
  event_ = Simulator::ScheduleNow(&EngineApp::turn, this);
}

void EngineApp::StopApplication() {
  is_stopped_ = true;  // frames still leave the queue, and would wake it
  event_.Cancel();
  socket_->SetRecvCallback(ns3::MakeNullCallback<void, Ptr<ns3::Socket>>());
}

void EngineApp::on_receive(Ptr<ns3::Socket> socket) {
  while (const Ptr<ns3::Packet> packet = socket->Recv()) {
    const std::uint32_t length =
        packet->CopyData(frame_.data(), static_cast<std::uint32_t>(frame_.size()));
    end_.deliver(reinterpret_cast<const std::byte*>(frame_.data()), length);
  }
  if (end_.wants_frames()) wake();
}

void EngineApp::wake() {
  if (is_stopped_ || (event_.IsRunning() &&
                      event_.GetTs() == static_cast<std::uint64_t>(Simulator::Now().GetTimeStep())))
    return;
  event_.Cancel();
  event_ = Simulator::ScheduleNow(&EngineApp::turn, this);
}

void EngineApp::turn() {
  const std::int64_t now_ns = Simulator::Now().GetNanoSeconds();
  const std::int64_t next_ns = end_.turn(now_ns);
  event_ = Simulator::Schedule(NanoSeconds(std::max<std::int64_t>(next_ns - now_ns, 1)),
                               &EngineApp::turn, this);
}

// --- UDP

void UdpSource::StartApplication() {
  socket_ = udp_socket(GetNode(), endpoint_);
  event_ = Simulator::ScheduleNow(&UdpSource::turn, this);
}

void UdpSource::turn() {
  std::int64_t next_ns = refill_ns;
  const auto send = [&] {
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(payload_bytes_, bytes_left_));
    bytes_left_ -= length;
    const Ptr<ns3::Packet> packet = ns3::Create<ns3::Packet>(length);
    const std::uint32_t wire_bytes = length + ip_udp_bytes + ethernet_bytes;
    packet->AddPacketTag(FlowTag(flow_));
    if (socket_->Send(packet) >= 0) handed_bytes_ += wire_bytes;
  };
  if (rate_mbps_ > 0) {
    send();
    next_ns = static_cast<std::int64_t>(payload_bytes_ * 8e3 / rate_mbps_);
  } else {
    while (bytes_left_ > 0 && handed_bytes_ - meter_.left_bytes(flow_) < full_bytes_) send();
  }
  if (bytes_left_ > 0) event_ = Simulator::Schedule(NanoSeconds(next_ns), &UdpSource::turn, this);
}

// --- TCP

void TcpSource::StartApplication() {
  socket_ =
      GetNode()->GetObject<ns3::TcpL4Protocol>()->CreateSocket(ns3::TypeId::LookupByName(variant_));
  socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), endpoint_.port));
  if (endpoint_.is_background) socket_->SetPriority(background_priority);
  socket_->SetSendCallback(MakeCallback(&TcpSource::on_room, this));
  socket_->TraceConnectWithoutContext("HighestSequence",
                                      MakeCallback(&TcpSource::on_highest, this));
  socket_->Connect(ns3::InetSocketAddress(endpoint_.peer, endpoint_.peer_port));
  socket_->ShutdownRecv();
  is_connected_ = true;
  if (rate_mbps_ > 0) grow();
}

void TcpSource::StopApplication() {
  event_.Cancel();
  bytes_left_ = 0;
  socket_->SetSendCallback(ns3::MakeNullCallback<void, Ptr<ns3::Socket>, std::uint32_t>());
  socket_->Close();
}

void TcpSource::grow() {
  grown_bytes_ += rate_mbps_ * 125'000 * static_cast<double>(grow_ns) * 1e-9;
  write();
  event_ = Simulator::Schedule(NanoSeconds(grow_ns), &TcpSource::grow, this);
}

void TcpSource::on_room(Ptr<ns3::Socket>, std::uint32_t) {
  // Called out of the socket's own turn: a write from here would go round once more inside it.
  Simulator::ScheduleNow(&TcpSource::write, this);
}

void TcpSource::write() {
  while (bytes_left_ > 0 && is_connected_) {
    std::uint64_t length =
        std::min<std::uint64_t>({write_bytes_max, bytes_left_, socket_->GetTxAvailable()});
    if (rate_mbps_ > 0)
      length = std::min(length, static_cast<std::uint64_t>(std::max(
                                    grown_bytes_ - static_cast<double>(written_bytes_), 0.0)));
    if (length == 0) return;
    const int taken = socket_->Send(ns3::Create<ns3::Packet>(static_cast<std::uint32_t>(length)));
    if (taken <= 0) return;
    bytes_left_ -= static_cast<std::uint64_t>(taken);
    written_bytes_ += static_cast<std::uint64_t>(taken);
    if (bytes_left_ == 0) socket_->Close();
  }
}

void TcpSource::on_highest(ns3::SequenceNumber32 before, ns3::SequenceNumber32 after) {
  if (after > before) bytes_started_ += static_cast<std::uint64_t>(after - before);
}

void ByteSink::StartApplication() {
  socket_ = ns3::Socket::CreateSocket(
      GetNode(), is_tcp_ ? ns3::TcpSocketFactory::GetTypeId() : ns3::UdpSocketFactory::GetTypeId());
  socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port_));
  if (is_tcp_) {
    socket_->Listen();
    socket_->SetAcceptCallback(ns3::MakeNullCallback<bool, Ptr<ns3::Socket>, const ns3::Address&>(),
                               MakeCallback(&ByteSink::on_accept, this));
  }
  socket_->SetRecvCallback(MakeCallback(&ByteSink::on_receive, this));
}

void ByteSink::StopApplication() {}

void ByteSink::on_accept(Ptr<ns3::Socket> socket, const ns3::Address&) {
  socket->SetRecvCallback(MakeCallback(&ByteSink::on_receive, this));
}

void ByteSink::on_receive(Ptr<ns3::Socket> socket) {
  while (const Ptr<ns3::Packet> packet = socket->Recv()) {
    if (packet->GetSize() == 0) return;  // end of the stream
    bytes_ += packet->GetSize();
    arrived_s_ = Simulator::Now().GetSeconds();
  }
}

// --- ping

void PingSource::StartApplication() {
  if (!is_tcp_) {
    socket_ = udp_socket(GetNode(), endpoint_);
    return begin(socket_);
  }
  socket_ = ns3::Socket::CreateSocket(GetNode(), ns3::TcpSocketFactory::GetTypeId());
  socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), endpoint_.port));
  socket_->SetConnectCallback(MakeCallback(&PingSource::begin, this),
                              ns3::MakeNullCallback<void, Ptr<ns3::Socket>>());
  socket_->Connect(ns3::InetSocketAddress(endpoint_.peer, endpoint_.peer_port));
}

void PingSource::begin(Ptr<ns3::Socket> socket) {
  socket->SetRecvCallback(MakeCallback(&PingSource::on_receive, this));
  event_ = Simulator::ScheduleNow(&PingSource::turn, this);
}

void PingSource::turn() {
  std::array<std::uint8_t, ping_bytes> body{};
  const std::int64_t now_ns = Simulator::Now().GetNanoSeconds();
  std::memcpy(body.data(), &now_ns, sizeof now_ns);
  socket_->Send(ns3::Create<ns3::Packet>(body.data(), ping_bytes));
  event_ = Simulator::Schedule(NanoSeconds(static_cast<std::int64_t>(interval_ms_ * 1e6)),
                               &PingSource::turn, this);
}

void PingSource::on_receive(Ptr<ns3::Socket> socket) {
  while (const Ptr<ns3::Packet> packet = socket->Recv()) {
    const std::size_t before = received_.size();
    received_.resize(before + packet->GetSize());
    packet->CopyData(received_.data() + before, packet->GetSize());
  }
  // TCP puts together again what it repeats.
  std::size_t at = 0;
  for (; at + ping_bytes <= received_.size(); at += ping_bytes) {
    std::int64_t sent_ns = 0;
    std::memcpy(&sent_ns, received_.data() + at, sizeof sent_ns);
    meter_.add(Simulator::Now().GetNanoSeconds() - sent_ns);
  }
  received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(at));
}

void PingEcho::StartApplication() {
  if (!is_tcp_) {
    socket_ = udp_socket(GetNode(), {port_, {}, 0, false});
    socket_->SetRecvCallback(MakeCallback(&PingEcho::on_receive, this));
    return;
  }
  socket_ = ns3::Socket::CreateSocket(GetNode(), ns3::TcpSocketFactory::GetTypeId());
  socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port_));
  socket_->Listen();
  socket_->SetAcceptCallback(ns3::MakeNullCallback<bool, Ptr<ns3::Socket>, const ns3::Address&>(),
                             MakeCallback(&PingEcho::on_accept, this));
}

void PingEcho::on_accept(Ptr<ns3::Socket> socket, const ns3::Address&) {
  socket->SetRecvCallback(MakeCallback(&PingEcho::on_receive, this));
}

void PingEcho::on_receive(Ptr<ns3::Socket> socket) {
  ns3::Address from;
  while (const Ptr<ns3::Packet> packet = socket->RecvFrom(from)) {
    std::vector<std::uint8_t> body(packet->GetSize());
    packet->CopyData(body.data(), packet->GetSize());
    socket->SendTo(ns3::Create<ns3::Packet>(body.data(), packet->GetSize()), 0, from);
  }
}

}  // namespace onehop::sim
