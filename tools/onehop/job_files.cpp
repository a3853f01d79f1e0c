// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Job, the files of a session: what people and programs are told of each, under the name that it got.
#include <fmt/format.h>

#include <algorithm>

#include "engine/file/manifest.hpp"
#include "tools/onehop/job.hpp"
#include "tools/onehop/quantity.hpp"

namespace onehop::tool {

namespace {

std::string hex(const Digest& digest, std::string_view kind) {
  const std::size_t length = kind == "sha256" ? 32 : 16;
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += fmt::format("{:02x}", std::to_integer<unsigned>(digest[i]));
  return text;
}

const char* name_of(FileOutcome outcome) {
  switch (outcome) {
    case FileOutcome::received: return "received";
    case FileOutcome::there: return "there";
    case FileOutcome::kept: return "kept";
    case FileOutcome::not_compared: return "not_compared";
  }
  return "?";
}

}  // namespace

void Job::set_place(std::string peer, const std::string& folder) {
  facts_.peer = std::move(peer);
  facts_.directory = file::display_name(folder);
}

void Job::on_file_done(const file::ManifestEntry& entry, const plane::FileDone& done) {
  const std::string name = file::display_name(file::final_name(entry.name, done.name_number));
  const bool is_verified = done.outcome == FileOutcome::received || done.outcome == FileOutcome::there;
  const std::string digest = is_verified ? hex(done.root, facts_.digest) : "";
  facts_.path = facts_.directory + (facts_.directory.ends_with('/') ? "" : "/") + name;
  reporter_.event("file", {{"name", file::display_name(entry.name)}, {"bytes", entry.size}, {"digest_kind", facts_.digest},
                           {"digest", is_verified ? Json(digest) : Json(nullptr)}, {"verified", is_verified},
                           {"outcome", name_of(done.outcome)}, {"path", facts_.path}});
  progress_.finish();
  if (is_verified) {
    facts_.bytes_total += entry.size;
    ++facts_.files_total;
    const char* const there = done.outcome == FileOutcome::there ? "  was there already" : "";
    return reporter_.say(fmt::format("{}  {}  {}:{}{}", name, format_bytes(entry.size), facts_.digest, digest, there));
  }
  ++facts_.files_kept_total;
  // Its blocks were counted as there while they were compared; no root was announced where nothing was.
  if (done.root != Digest{}) facts_.bytes_skipped_total -= std::min(facts_.bytes_skipped_total, entry.size);
  reporter_.say(name + (done.outcome == FileOutcome::kept ? ": kept what is there, which is not the same"
                                                          : ": kept what is there, which could not be compared"));
}

}  // namespace onehop::tool
