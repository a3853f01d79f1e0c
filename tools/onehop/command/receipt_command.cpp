// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop receipt --check: whether a receipt (docs/receipt.md) is as the device that signed it wrote
// it, and who that is.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "control/pair/signed_file.hpp"
#include "engine/base/system/text_file.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/devices.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

/// What stands before the signature, of which the last value is the key.
constexpr std::string_view key_mark = ",\n\"device_key\": \"";

std::string owner_of(const pair::PublicKey& key, const std::optional<User>& user) {
  const auto book = read_peers(user);
  if (book.has_value())
    if (const pair::Peer* peer = book.value().find(key)) return "the paired device " + peer->name;
  const auto folder = pair::PrivateFolder::open(device_folder(user), ::geteuid(), false);
  if (folder.has_value() && folder.value()) {
    const auto own = pair::DeviceKey::read(*folder.value());
    if (own.has_value() && own.value() && own.value()->public_key() == key) return "this device";
  }
  return {};
}

Result<void> check(const std::string& file) {
  const auto fault = [&](ExitCode code, const char* cause, const char* hint) {
    return Error{code, "check the receipt " + file, cause, hint};
  };
  ONEHOP_TRY(user, find_user({}, {}));
  ONEHOP_TRYV(become(user));
  const TextFile in{file};
  if (in.fail()) return errno_error(ExitCode::local_file_error, "read the receipt " + file);
  const std::string text = in.str();
  const std::size_t end = text.rfind(pair::signature_mark);
  if (end == std::string::npos)
    return fault(ExitCode::verification_failed, "it is not signed",
                 "Receipts of transfers between paired devices are");
  const std::string_view head{text.data(), end};
  std::string_view tail{text};
  tail.remove_prefix(end + pair::signature_mark.size());
  pair::PublicKey key;
  pair::Signature signature;
  const std::size_t key_at = head.rfind(key_mark);
  const bool is_read = key_at != std::string_view::npos && head.ends_with('"') &&
                       pair::from_hex(head.substr(key_at + key_mark.size(), 64), key) &&
                       key_at + key_mark.size() + 65 == head.size() &&
                       pair::from_hex(tail.substr(0, 128), signature) &&
                       tail.substr(std::min<std::size_t>(128, tail.size())) == "\"\n}\n";
  if (!is_read) return fault(ExitCode::verification_failed, "its signature is damaged", "");
  pair::RunningHash hash;
  hash.update(std::as_bytes(std::span{head}));
  if (!pair::is_signed(key, hash.finish(), signature))
    return fault(ExitCode::verification_failed,
                 "it was changed after it was signed, or the signature is another receipt's", "");
  const std::string owner = owner_of(key, user);
  if (owner.empty())
    return fault(ExitCode::authentication_failed,
                 "it is whole, and signed by a device that is not known here",
                 "Check it where that device is paired: onehop peers lists the keys");
  fmt::print("{}: whole, and signed by {} (key {})\n", file, owner, pair::fingerprint(key));
  return success();
}

}  // namespace

void add_receipt_options(CLI::App& command, ReceiptCommand& receipt) {
  command
      .add_option("--check", receipt.file,
                  "a file that 'send' or 'recv' wrote with --receipt between paired devices")
      ->type_name("FILE")
      ->required();
  command.footer(
      "It ends with 0 where a known device signed it, 4 where an unknown one did, 6\n"
      "where it is not signed or was changed.");
}

ExitCode receipt_command(const ReceiptCommand& command) {
  const auto checked = check(command.file);
  if (checked.has_value()) return ExitCode::done;
  tell(fitted("onehop receipt: " + checked.error().message() + "\n"));
  return checked.error().code;
}

}  // namespace onehop::tool
