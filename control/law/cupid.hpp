// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Cupid: the airtime share as a law, and as a cap around another law. airtime_share.hpp has the
// equations of R, the share.
//
//   Cupid      v_0 = R                          without its sensors: safe-range's v_0
//   CupidCap   v_0 = min(v_inner, R) if N > 1   without its sensors, or alone: v_inner
//
// Source: [CUPID]. As a cap it keeps a law that fills all free air from taking the air of others.
#pragma once

#include "control/law/controller.hpp"
#include "control/law/estimate/frame_ratio.hpp"
#include "control/law/notice.hpp"
#include "control/law/safe_range.hpp"
#include "control/law/term/airtime_share.hpp"

namespace onehop::law {

class Cupid final : public Controller {
 public:
  /// `safe_range` is used while a sensor is missing; its rates bound both.
  Cupid(const AirtimeShareParams& share, const SafeRangeParams& safe_range) noexcept
      : share_{share},
        safe_range_{safe_range},
        link_{safe_range},
        batch_frames_max_{safe_range.batch_frames_max} {}
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] std::string_view name() const override { return "cupid"; }

 private:
  AirtimeShare share_;
  SafeRangeModel safe_range_;
  LinkModel link_;
  std::uint32_t batch_frames_max_;
  SensorTimeout no_airtime_, no_phy_rate_;
};

class CupidCap final : public WrapperLaw {
 public:
  CupidCap(std::unique_ptr<Controller> inner, const AirtimeShareParams& params)
      : WrapperLaw{std::move(inner), ""}, share_{params} {}
  RateGrant step(const LinkSample& sample) override;

 private:
  AirtimeShare share_;
  FrameRatio ratio_;
};

}  // namespace onehop::law
