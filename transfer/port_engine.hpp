// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PortEngine: an Engine over one kind of port. Only ports.cpp compiles the loops.
#pragma once

#include "engine/run/receiver_loop.hpp"
#include "engine/run/sender_loop.hpp"
#include "transfer/engine.hpp"

namespace onehop::host {

template <class Loop, class PortType>
class PortEngine final : public Engine {
 public:
  template <class Config>
  PortEngine(PortType& port, const run::SessionKeys& keys, const Config& config,
             run::EngineLinks links)
      : port_{port}, loop_{port, keys, config, links} {}
  Result<void> start(const run::EngineThreadConfig& config) override {
    return thread_.start(loop_, port_, config);
  }
  void join() override { thread_.join(); }
  [[nodiscard]] Nanos cpu_time() const override { return thread_.cpu_time(); }

 private:
  PortType& port_;
  Loop loop_;
  run::EngineThread thread_;
};

}  // namespace onehop::host
