// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   several transfers live in one process, each with its own events; questions, interrupts
//         and wrong options come out as the header says.
// Method: whole transfers over loopback on free ports, each run() on a thread of its own.
// Bounds: none on time but that everything ends by itself.
#include "control/transfer/question.hpp"
#include "tests/control/transfer/running.hpp"

namespace onehop::api {
using namespace test;

TEST_CASE("two pairs in one process carry two files at once", "[transfer]") {
  const Folder folders[2];
  std::string addresses[2], sent[2];
  std::vector<std::unique_ptr<Running<ReceiveOptions>>> receivers;
  std::vector<std::unique_ptr<Running<SendOptions>>> senders;
  for (unsigned i = 0; i < 2; ++i) {
    addresses[i] = free_address();
    sent[i] = folders[i].file("file.bin", (4 + i) << 20, i + 1);
    receivers.push_back(
        std::make_unique<Running<ReceiveOptions>>(receive_into(folders[i], addresses[i])));
  }
  for (unsigned i = 0; i < 2; ++i) {
    CHECK(receivers[i]->wait_for<Started>().listen == addresses[i]);
    SendOptions options = send_to(addresses[i], sent[i]);
    options.common.law = i == 0 ? "auto" : "fixed:200Mbit";
    senders.push_back(std::make_unique<Running<SendOptions>>(std::move(options)));
  }
  for (unsigned i = 0; i < 2; ++i) {
    CHECK(senders[i]->end().message().empty());
    CHECK(receivers[i]->end().message().empty());
    const End account = senders[i]->wait_for<End>(), far = receivers[i]->wait_for<End>();
    CHECK(account.bytes_total == (4 + i) << 20);
    CHECK(far.bytes_total == account.bytes_total);
    CHECK(account.law == (i == 0 ? "auto" : "fixed"));
    const FileDone file = senders[i]->wait_for<FileDone>();
    CHECK(file.digest == receivers[i]->wait_for<FileDone>().digest);
    CHECK(senders[i]->count<FileDone>() == 1);
    CHECK((content_of(file.path) == content_of(sent[i])));
    CHECK(senders[i]->wait_for<Progress>().role == Role::sending);
  }
}

TEST_CASE("receipts of both ends have one root, and is_quick takes what is there unread",
          "[transfer]") {
  const Folder folder;
  const std::string path = folder.file("file.bin", 300'000, 1);
  std::string root_before;
  for (const bool is_quick : {false, true}) {
    const std::string address = free_address();
    ReceiveOptions options = receive_into(folder, address);
    options.is_quick = is_quick;
    options.common.receipt_file = (folder.path / "received.json").string();
    Running receiver{options};
    (void)receiver.wait_for<Started>();
    SendOptions sending = send_to(address, path);
    sending.common.receipt_file = (folder.path / "sent.json").string();
    Running sender{sending};
    CHECK(sender.end().message().empty());
    CHECK(receiver.end().message().empty());
    const End sent = sender.wait_for<End>(), received = receiver.wait_for<End>();
    CHECK(sent.receipt_root.starts_with("sha256:"));
    CHECK(sent.receipt_root == received.receipt_root);
    CHECK(sent.receipt_root != root_before);  // of a file that nobody read there is no digest
    root_before = sent.receipt_root;
    for (const End& end : {sent, received}) {
      CHECK(end.files_total == 1);
      CHECK(end.files_there_unread_total == (is_quick ? 1 : 0));
      CHECK(end.bytes_skipped_total == (is_quick ? 300'000 : 0));
    }
    CHECK(content_of(sending.common.receipt_file).find(sent.receipt_root) != std::string::npos);
    CHECK(fs::exists(options.common.receipt_file));
  }
}

TEST_CASE("an offer waits for its answer, and a refusal ends both ends", "[transfer]") {
  const Folder folder;
  const std::string address = free_address(), path = folder.file("file.bin", 1000, 1);
  const auto answer = GENERATE(Answer::accept, Answer::refuse);
  ReceiveOptions options = receive_into(folder, address);
  options.is_approved = true;
  bool is_open_before_files = false;
  options.before_files = [&] {
    is_open_before_files = true;
    return Error{};
  };
  Running receiver{options};
  (void)receiver.wait_for<Started>();
  Running sender{send_to(address, path)};
  const Offer offer = receiver.wait_for<Offer>();
  CHECK(is_open_before_files);
  CHECK(offer.conflicts == 0);
  REQUIRE(offer.files.size() == 1);
  CHECK(offer.files[0].name == "file.bin");
  CHECK(offer.files[0].bytes == 1000);
  CHECK_FALSE(fs::exists(folder.path / "in" / "file.bin"));
  receiver.transfer().answer(offer.id + 1, Answer::accept);  // answers nothing
  receiver.transfer().answer(offer.id, answer);
  const Error sent = sender.end(), received = receiver.end();
  CHECK(receiver.count<OfferGone>() == 1);
  CHECK(fs::exists(folder.path / "in" / "file.bin") == (answer == Answer::accept));
  CHECK(sent.status == (answer == Answer::accept ? Status::done : Status::refused_by_peer));
  CHECK(received.status == sent.status);
}

TEST_CASE("a conflict is shown in the offer, and one answer settles it", "[transfer]") {
  const Folder folder;
  const std::string address = free_address(), path = folder.file("file.bin", 1000, 1);
  std::ofstream{folder.path / "in" / "file.bin"} << "old";
  Running receiver{receive_into(folder, address), [](Transfer& self, const Event& event) {
                     if (const auto* offer = std::get_if<Offer>(&event))
                       self.answer(offer->id, Answer::rename);  // at once, in the handler
                   }};
  (void)receiver.wait_for<Started>();
  Running sender{send_to(address, path)};
  CHECK(sender.end().message().empty());
  CHECK(receiver.end().message().empty());
  const Offer offer = receiver.wait_for<Offer>();
  REQUIRE(offer.files.size() == 1);
  CHECK(offer.conflicts == 1);
  CHECK_FALSE(offer.files[0].conflict.empty());
  CHECK(offer.files[0].existing == 3);
  CHECK(content_of(folder.path / "in" / "file.bin") == "old");
  CHECK((content_of(receiver.wait_for<FileDone>().path) == content_of(path)));
}

TEST_CASE("an interrupt ends a transfer that can be resumed, at any time", "[transfer]") {
  const Folder folder;
  const std::string address = free_address(), path = folder.file("file.bin", 8 << 20, 1);
  {
    Transfer never{send_to(address, path), {}};
    REQUIRE_FALSE(never.set_code(code));
    never.interrupt();
    CHECK(never.run().status == Status::interrupted);
  }
  Running receiver{receive_into(folder, address)};
  (void)receiver.wait_for<Started>();
  SendOptions options = send_to(address, path);
  options.common.law = "fixed:16Mbit";
  Running sender{options, [](Transfer& self, const Event& event) {
                   const auto* progress = std::get_if<Progress>(&event);
                   if (progress != nullptr && progress->elapsed_ns > 300'000'000) self.interrupt();
                 }};
  CHECK(sender.end().status == Status::interrupted);
  CHECK(receiver.end().status == Status::interrupted);
  CHECK(sender.wait_for<End>().exit_code == Status::interrupted);
  // What is there already is neither done nor to come: both ends get to the end of the rest.
  Progress sent, received;
  const auto keep_newest = [](Progress& newest) {
    return [&newest](Transfer&, const Event& event) {
      const auto* progress = std::get_if<Progress>(&event);
      if (progress != nullptr && progress->bytes_done > 0) newest = *progress;
    };
  };
  Running again{receive_into(folder, address), keep_newest(received)};
  (void)again.wait_for<Started>();
  options.common.law = "auto";
  Running rest{options, keep_newest(sent)};
  CHECK(rest.end().message().empty());
  CHECK(again.end().message().empty());
  const std::uint64_t skipped = rest.wait_for<End>().bytes_skipped_total;
  CHECK(skipped > 0);
  for (const Progress& newest : {sent, received}) {
    CHECK(newest.bytes_expected == (8U << 20) - skipped);
    CHECK(newest.bytes_done == newest.bytes_expected);
  }
  CHECK((content_of(folder.path / "in" / "file.bin") == content_of(path)));
}

TEST_CASE("wrong options are an error of check(), and change nothing", "[transfer]") {
  const auto fault = [](auto change) {
    SendOptions options = send_to("127.0.0.1", "/none");
    change(options);
    const Transfer transfer{options, {}};
    return transfer.check();
  };
  CHECK_FALSE(fault([](SendOptions&) {}));
  for (const std::string word : {"pigeon", "Auto"})
    CHECK(
        fault([&](SendOptions& o) { o.common.io = word; }).message().find("auto|udp|afxdp|dpdk") !=
        std::string::npos);
  CHECK(fault([](SendOptions& o) { o.common.file_io = "paper"; }).status == Status::usage);
  CHECK(fault([](SendOptions& o) { o.common.law = "vegas"; }).status == Status::usage);
  CHECK(fault([](SendOptions& o) { o.common.law_params = "{"; }).status == Status::usage);
  CHECK(fault([](SendOptions& o) { o.to = ":7411"; }).attempt == "read --to");
  CHECK(fault([](SendOptions& o) { o.has_mac_noack = true; }).status == Status::usage);
  ReceiveOptions receive;
  receive.on_exist = "perhaps";
  CHECK(Transfer{receive, {}}.check().attempt == "read --on-exist");

  std::size_t errors = 0;
  Transfer missing{send_to("127.0.0.1:1", "/none"),
                   [&](const Event& event) { errors += std::holds_alternative<Error>(event); }};
  CHECK(missing.set_code("short").status == Status::usage);
  CHECK(missing.run().status == Status::usage);  // without a code
  CHECK(errors == 1);
}

TEST_CASE("a question that nobody answers ends, and what is said later answers nothing",
          "[transfer]") {
  transfer::Question question;
  const std::uint64_t first = question.begin();
  CHECK_FALSE(question.wait_answer({}, std::chrono::milliseconds{1}).has_value());
  const std::uint64_t second = question.begin();
  question.answer(first, Answer::accept);
  CHECK_FALSE(question.wait_answer({}, std::chrono::milliseconds{1}).has_value());
  const std::uint64_t third = question.begin();
  CHECK(second != third);
  question.answer(third, Answer::accept);
  CHECK(question.wait_answer({}, std::chrono::hours{1}) == Answer::accept);
}

}  // namespace onehop::api
