// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Fixed: what it grants, and that nothing of the link changes it.
#include <catch2/catch.hpp>

#include "control/law/fixed.hpp"

namespace onehop::law {
namespace {

TEST_CASE("fixed grants its rate and 18 ms of backlog", "[control][law]") {
  Fixed law{mbit_per_s(600)};
  LinkSample s;
  s.path.wire_per_frame = {1514};
  const RateGrant grant = law.step(s);
  CHECK(grant.rate == mbit_per_s(600));
  CHECK(grant.backlog_max == mbit_per_s(600) * 18ms);
}

}  // namespace
}  // namespace onehop::law
