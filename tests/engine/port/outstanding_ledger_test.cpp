// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The ledger alone: charges as the kernel makes them, in numbers made for the test.
#include <catch2/catch.hpp>

#include <memory>

#include "engine/port/outstanding_ledger.hpp"

namespace onehop {

TEST_CASE("the ledger reports the newest batches and interpolates the oldest", "[port][ledger]") {
  const auto ledger = std::make_unique<OutstandingLedger>();
  ledger->push(Bytes{1514}, 1, 2304);
  ledger->push(Bytes{15'140}, 10, 23'040);
  CHECK(ledger->outstanding(2304 + 23'040) == Bytes{1514 + 15'140});
  CHECK(ledger->outstanding(23'040 + 1152) == Bytes{757 + 15'140});
  CHECK(ledger->outstanding(23'040) == Bytes{15'140});
  CHECK(ledger->outstanding(11'520) == Bytes{7570});
  CHECK(ledger->outstanding(0) == Bytes{0});
  // What was found gone stays gone.
  CHECK(ledger->outstanding(25'344) == Bytes{0});
}

TEST_CASE("frames freed while a batch is sent do not shrink its charge", "[port][ledger]") {
  const auto ledger = std::make_unique<OutstandingLedger>();
  ledger->push(Bytes{15'140}, 10, 23'040);
  ledger->push(Bytes{15'140}, 10, 1000);  // the kernel freed most of the first meanwhile
  CHECK(ledger->outstanding(23'040) == Bytes{15'140});
}

TEST_CASE("a batch never charged is gone, and sizes are learnt apart", "[port][ledger]") {
  const auto ledger = std::make_unique<OutstandingLedger>();
  ledger->push(Bytes{86}, 1, 0);
  CHECK(ledger->outstanding(0) == Bytes{0});
  ledger->push(Bytes{86}, 1, 768);
  ledger->push(Bytes{1514}, 1, 2304);
  CHECK(ledger->outstanding(3072) == Bytes{1600});
  CHECK(ledger->outstanding(2304) == Bytes{1514});
}

TEST_CASE("the ledger stays exact in sum when it holds more batches than it remembers",
          "[port][ledger]") {
  const auto ledger = std::make_unique<OutstandingLedger>();
  const auto batches = static_cast<std::int64_t>(OutstandingLedger::batches_max + 10);
  for (std::int64_t i = 0; i < batches; ++i) ledger->push(Bytes{1514}, 1, 2304);
  CHECK(ledger->outstanding(2304 * batches) == Bytes{1514 * batches});
  CHECK(ledger->outstanding(0) == Bytes{0});
}

}  // namespace onehop
