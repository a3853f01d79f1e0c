// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Cupid: the airtime share as a law, and as a cap around another law. The equations are those of airtime_share.hpp.
//
//   Cupid      v_0 = R                                     without its sensors: safe-range's v_0
//   CupidCap   v_0 = min(v_inner, R) while N > 1           without its sensors, or alone on the channel: v_inner
//
// Source: [CUPID]. As a cap it keeps a law that fills whatever it finds from taking the air of others.
#pragma once

#include <memory>

#include "control/law/airtime_share.hpp"
#include "control/law/controller.hpp"
#include "control/law/frame_ratio.hpp"
#include "control/law/notice.hpp"
#include "control/law/safe_range.hpp"

namespace onehop::law {

struct CupidParams {
  AirtimeShareParams share;
  SafeRangeParams safe_range;   ///< what stands in while a sensor is missing; rate_min and rate_max bound both
};

class Cupid final : public Controller {
 public:
  explicit Cupid(const CupidParams& params) noexcept;
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] const LawTrace& trace() const override { return trace_; }
  [[nodiscard]] std::string_view name() const override { return "cupid"; }

 private:
  CupidParams params_;
  AirtimeShare share_;
  SafeRange fallback_;
  FrameRatio ratio_;
  LawTrace trace_;
  Absence no_airtime_, no_phy_rate_;
};

class CupidCap final : public Controller {
 public:
  CupidCap(std::unique_ptr<Controller> inner, const AirtimeShareParams& params) noexcept;
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] const LawTrace& trace() const override { return trace_; }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  std::unique_ptr<Controller> inner_;
  AirtimeShare share_;
  FrameRatio ratio_;
  LawTrace trace_;
};

}  // namespace onehop::law
