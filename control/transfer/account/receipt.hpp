// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receipt: a file that lists what one session delivered, entry by entry, with a root over all of it
// that is the same at both ends (docs/receipt.md defines it).
//
//   open ─▶ add() .. on_volume_over() ─▶ [ nameless file ] ─▶ close() ─▶ FILE
//
// Entries are added in any order, and written in the order of the offer: those of a volume when it
// is over. So the memory is that of the open volumes. The thread in run() calls it, and it may
// block on the disk. An error is kept for close(), because the transfer does not depend on the
// receipt.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "control/pair/signed_file.hpp"
#include "control/session/message.hpp"
#include "control/transfer/api/transfer.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/list/manifest.hpp"

namespace onehop::transfer {

/// hex of what a digest of this kind (crypto::digest_name) fills.
[[nodiscard]] inline std::string hex(const Digest& digest, std::string_view kind) {
  return pair::to_hex(std::span{digest}.first(kind == "sha256" ? 32 : 16));
}

/// outcome_of is the outcome as events and receipts name it.
[[nodiscard]] constexpr api::Outcome outcome_of(FileOutcome outcome) noexcept {
  static_assert(static_cast<int>(FileOutcome::name_taken) ==
                static_cast<int>(api::Outcome::name_taken));  // in the same order
  return static_cast<api::Outcome>(outcome);
}

class Receipt {
 public:
  /// open makes the file, which has no name before close(). Error: 8, it cannot be made there.
  /// Syscalls: open, stat.
  [[nodiscard]] static Result<std::unique_ptr<Receipt>> open(const api::Options& options,
                                                             std::string_view role);
  ~Receipt();
  Receipt(const Receipt&) = delete;
  Receipt& operator=(const Receipt&) = delete;

  /// add records the outcome of an entry, once per entry of a volume.
  void add(const list::ManifestEntry& entry, const session::FileDone& done,
           std::string_view digest_kind);
  /// on_volume_over: the oldest volume had so many entries, and all were added.
  void on_volume_over(std::size_t entries);
  /// on_restart keeps what was added of files; all else is offered again, folders too.
  void on_restart();

  /// close writes the account, signs everything if there is a `signer`, and gives the file its
  /// name, replacing any file there. `is_complete`: every offered entry was added. A receipt that
  /// is not complete and lists nothing leaves no file. Returns the root as text; empty if it is not
  /// complete. Error: 8. Syscalls: pwrite, fsync, linkat, rename.
  [[nodiscard]] Result<std::string> close(const api::End& end, bool is_complete,
                                          const pair::DeviceKey* signer = nullptr);

 private:
  struct Item {
    list::ManifestEntry entry;
    FileOutcome outcome = FileOutcome::received;
    unsigned name_number = 0;
    std::string digest;  ///< as written; empty: it is not known
  };
  Receipt(std::string file, Fd fd, std::string temporary);
  void write_head(const api::Options& options, std::string_view role);
  void write_item(const Item& item);
  void write_oldest();
  void write_account(const api::End& end, bool is_complete);
  void sign(const pair::DeviceKey& signer);
  void append(std::string_view text);
  void flush();
  [[nodiscard]] int give_name();
  [[nodiscard]] std::string root_text() const;

  const std::string file_;
  const Fd fd_;
  std::string temporary_;  // its name; empty: none
  std::string buffer_;
  std::uint64_t offset_ = 0;              // of the buffer in the file
  int errno_value_ = 0;                   // the first error
  std::array<std::byte, 32> root_;        // over what is written
  pair::RunningHash written_;             // all bytes of the file so far
  std::map<std::uint32_t, Item> items_;   // not written yet, by index in the session
  std::uint64_t entries_ = 0;             // written
  std::uint64_t folders_ = 0;             // of them
  std::uint64_t names_refused_ = 0;       // of them, files and folders
  std::array<std::uint64_t, 5> files_{};  // of the others, by outcome
};

}  // namespace onehop::transfer
