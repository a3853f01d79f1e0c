// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what becomes of each offered file is the same at both ends: received, there, kept; and so
//         is the exit code that follows.
// Method: as exit_code_test.cpp: loopback, the test plays the engines.
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/control/session/session_world.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

/// The receiver answers so of each file; !is_all: it wants the third one.
void answer_with(World& world, FileAction action, bool is_all) {
  world.recv_host.answer = [&world, action, is_all](const OfferedVolume& offer,
                                                    const Decide& decide) {
    auto& actions = world.recv_host.actions;
    actions.assign(offer.manifest->files.size(), action);
    if (!is_all) actions[2] = FileAction::send;
    decide(list::Answer{actions, {}, {}});
  };
}

}  // namespace

TEST_CASE(
    "kept files are not waited for, and are 6 at both ends; when all are kept no engine starts",
    "[control][session]") {
  World world;
  const bool is_all = GENERATE(true, false);
  const FileAction action = GENERATE(FileAction::keep, FileAction::keep_unread);
  const FileOutcome outcome =
      action == FileAction::keep ? FileOutcome::kept : FileOutcome::not_compared;
  answer_with(world, action, is_all);
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  CHECK(world.send_host.engine.has_value() == !is_all);
  CHECK(world.send_host.phases.back() == Phase::done);
  for (const auto& outcomes : {world.send_host.outcomes, world.recv_host.outcomes}) {
    REQUIRE(outcomes.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(outcomes[i].file == i);
      CHECK(outcomes[i].outcome == (i < 2 || is_all ? outcome : FileOutcome::received));
    }
  }
  for (const auto& end : {world.send_end, world.recv_end}) {
    CHECK(end->code == ExitCode::verification_failed);
    CHECK(end->error.message().find("file-0") != std::string::npos);
    CHECK(end->error.message().find(action == FileAction::keep
                                        ? "not the same"
                                        : "could not be compared") != std::string::npos);
    CHECK(end->error.message().find(is_all ? "2 more" : "1 more") != std::string::npos);
    CHECK(end->error.message().find("--on-exist rename") != std::string::npos);
  }
}

TEST_CASE("files that are taken by size and time are not waited for, and are 0 at both ends",
          "[control][session]") {
  World world;
  const bool is_all = GENERATE(true, false);
  answer_with(world, FileAction::assume, is_all);
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  CHECK(world.send_host.engine.has_value() == !is_all);
  for (const auto& outcomes : {world.send_host.outcomes, world.recv_host.outcomes}) {
    REQUIRE(outcomes.size() == 3);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(outcomes[i].outcome ==
            (i < 2 || is_all ? FileOutcome::there_unread : FileOutcome::received));
  }
  for (const auto& end : {world.send_end, world.recv_end}) {
    CHECK(end->code == ExitCode::done);
    CHECK(end->is_complete);
  }
}

TEST_CASE("names that the receiver cannot hold are 12 at both ends, each with its cause",
          "[control][session]") {
  World world;
  const bool is_all = GENERATE(true, false), is_kept_too = GENERATE(true, false);
  world.recv_host.answer = [&](const OfferedVolume&, const Decide& decide) {
    world.recv_host.actions = {FileAction::name_refused, FileAction::name_taken,
                               is_kept_too ? FileAction::keep
                               : is_all    ? FileAction::name_refused
                                           : FileAction::send};
    std::vector<std::uint8_t> faults{EINVAL};
    if (is_all && !is_kept_too) faults.push_back(ENAMETOOLONG);
    decide(list::Answer{world.recv_host.actions, {}, "in", faults});
  };
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  CHECK(world.send_host.engine.has_value() == (!is_all && !is_kept_too));
  for (const auto& outcomes : {world.send_host.outcomes, world.recv_host.outcomes}) {
    REQUIRE(outcomes.size() == 3);
    CHECK(outcomes[0].outcome == FileOutcome::name_refused);
    CHECK(outcomes[0].name_fault == EINVAL);
    CHECK(outcomes[1].outcome == FileOutcome::name_taken);
    if (is_all && !is_kept_too) CHECK(outcomes[2].name_fault == ENAMETOOLONG);
  }
  for (const auto& end : {world.send_end, world.recv_end}) {
    CHECK(end->is_complete);
    CHECK(end->code == (is_kept_too ? ExitCode::verification_failed : ExitCode::partly_done));
    if (is_kept_too) continue;
    CHECK(end->error.message().find("file-0': the file system there refuses the name: "
                                    "Invalid argument") != std::string::npos);
    CHECK(end->error.message().find(is_all ? "2 more" : "1 more") != std::string::npos);
  }
}

TEST_CASE("a compared file is 0 where it is the same, else 6, and no byte of it is sent",
          "[control][session]") {
  World world;
  const bool is_same = GENERATE(true, false);
  world.recv_host.script.outcome = is_same ? FileOutcome::there : FileOutcome::kept;
  world.recv_host.answer = [&](const OfferedVolume&, const Decide& decide) {
    world.recv_host.actions = {FileAction::send, FileAction::compare, FileAction::send};
    decide(list::Answer{world.recv_host.actions, {}, {}});
  };
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  for (const auto& end : {world.send_end, world.recv_end})
    CHECK(end->code == (is_same ? ExitCode::done : ExitCode::verification_failed));
  for (const auto& outcomes : {world.send_host.outcomes, world.recv_host.outcomes}) {
    REQUIRE(outcomes.size() == 3);
    CHECK(outcomes[1].outcome == *world.recv_host.script.outcome);
    CHECK(outcomes[1].root == some_digest(1, 200));
  }
  CHECK(world.recv_host.engine->skipped() == 4);  // all its blocks, as digests
}

TEST_CASE("the sender learns the folder and the number of a name that was taken",
          "[control][session]") {
  World world;
  world.recv_host.script.name_number = 3;
  world.recv_host.answer = [&](const OfferedVolume& offer, const Decide& decide) {
    decide(list::Answer{
        std::vector<FileAction>(offer.manifest->files.size(), FileAction::send), {}, "/home/b/in"});
  };
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::done);
  CHECK(world.send_host.accepted->answer->folder == "/home/b/in");
  REQUIRE(world.send_host.outcomes.size() == 3);
  for (const FileDone& done : world.send_host.outcomes) CHECK(done.name_number == 3);
}
