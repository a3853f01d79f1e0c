// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a campaign came to, as text and as JSON lines (schema_version 1: `stress`,
// `stress_failure`).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "tools/labs/stress/campaign.hpp"

namespace onehop::stress {

/// HowToRepeat: the words that play one schedule alone.
struct ReportContext {
  std::uint64_t seed = 1;
  std::string again;   ///< "onehop stress rings --seed 1 --only 7"
  double seconds = 0;  ///< wall clock
};

[[nodiscard]] std::string text_of(const CampaignResult& result, const ReportContext& context);
[[nodiscard]] nlohmann::ordered_json json_of(const CampaignResult& result,
                                             const ReportContext& context);
[[nodiscard]] std::string failure_text(const CampaignFailure& failure,
                                       const ReportContext& context);
[[nodiscard]] nlohmann::ordered_json failure_json(const CampaignFailure& failure,
                                                  const ReportContext& context);

}  // namespace onehop::stress
