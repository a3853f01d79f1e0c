// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what is there is told and compared after somebody agreed, and stated by SHA-256 where a
//         receiver or a receipt wants it.
// Method: whole transfers over loopback.
#include <set>

#include "tests/control/transfer/running.hpp"

namespace onehop::api {
using namespace test;

// Goal:   a sender that knows the code finds out nothing by offers before somebody has agreed.
// Method: the file of a four-digit PIN is there. It is offered right, wrong and with another size,
//         by itself and in its folder; nobody agrees. Then somebody does.
// Bounds: all refusals read alike, and name nothing.
TEST_CASE("P5 a guess of what is there is answered after a person has agreed alone", "[transfer]") {
  const bool is_tree = GENERATE(false, true);
  std::set<std::string> told;
  for (const std::string guess : {"4711", "0000", "47110"}) {
    const Folder folder;
    const fs::path there = folder.path / "in" / (is_tree ? "Documents/.vault" : "");
    fs::create_directories(there);
    std::ofstream{there / "pin.txt"} << "4711";
    const fs::path from = folder.path / (is_tree ? "Documents/.vault" : "");
    fs::create_directories(from);
    std::ofstream{from / "pin.txt"} << guess;
    const fs::path path = is_tree ? folder.path / "Documents" : from / "pin.txt";
    const auto ask = [&](Answer answer) {
      const std::string address = free_address();
      Running receiver{receive_into(folder, address), [answer](Transfer& self, const Event& event) {
                         if (const auto* offer = std::get_if<Offer>(&event))
                           self.answer(offer->id, answer);
                       }};
      (void)receiver.wait_for<Started>();
      Running sender{send_to(address, path.string())};
      const Error sent = sender.end();
      CHECK(receiver.end().status == (sent ? Status::local_file_error : Status::done));
      CHECK(receiver.count<Offer>() == 1);
      return sent;
    };
    const Error refused = ask(Answer::refuse);
    CHECK(refused.status == Status::refused_by_peer);
    CHECK(refused.message().find("pin") == std::string::npos);
    CHECK(refused.message().find("exist") == std::string::npos);
    told.insert(refused.message());
    CHECK(content_of(there / "pin.txt") == "4711");
    if (guess == "4711") CHECK_FALSE(ask(Answer::resume));  // now it may be compared
  }
  CHECK(told.size() == 1);
}

TEST_CASE("a receiver has SHA-256 where it asks for it, and both have where a receipt states it",
          "[transfer]") {
  const Folder folder;
  const std::string address = free_address(), path = folder.file("file.bin", 300'000, 1);
  ReceiveOptions options = receive_into(folder, address);
  SendOptions sending = send_to(address, path);
  const int how = GENERATE(0, 1, 2, 3);
  if (how == 1) options.common.digest = "sha256";
  if (how == 2) options.common.receipt_file = (folder.path / "received.json").string();
  if (how == 3) sending.common.receipt_file = (folder.path / "sent.json").string();
  Running receiver{options};
  (void)receiver.wait_for<Started>();
  Running sender{sending};
  CHECK(sender.end().message().empty());
  CHECK(receiver.end().message().empty());
  const std::string kind = how == 0 ? "xxh3" : "sha256";
  for (const auto& [end, done] : {std::pair{sender.wait_for<End>(), sender.wait_for<FileDone>()},
                                  {receiver.wait_for<End>(), receiver.wait_for<FileDone>()}}) {
    CHECK(end.digest == kind);
    CHECK(done.digest_kind == kind);
    CHECK(done.digest.size() == (how == 0 ? 32 : 64));
  }
  if (how < 2) return;
  const std::string receipt =
      content_of(how == 2 ? options.common.receipt_file : sending.common.receipt_file);
  CHECK(receipt.find("\"digest\": \"sha256:") != std::string::npos);
  CHECK(receipt.find("xxh3:") == std::string::npos);
}

}  // namespace onehop::api
