// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Fixed: a rate that the user gives, in wire bytes per second. It reads only what the trace shows.
#pragma once

#include "control/law/controller.hpp"

namespace onehop::law {

struct FixedParams {
  BytesPerSecond rate{};
  Nanos d_1{4ms};
  std::uint32_t batch_frames_max = 44;
};

class Fixed final : public Controller {
 public:
  explicit Fixed(const FixedParams& params) noexcept : params_{params} {}
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] std::string_view name() const override { return "fixed"; }
  [[nodiscard]] bool is_constant() const override { return true; }

 private:
  FixedParams params_;
};

}  // namespace onehop::law
