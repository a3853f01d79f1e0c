// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Side: what a sending and a receiving Transfer share: options, events, the io_context that run()
// runs, the data path and the code.
#pragma once

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "control/pair/device_hello.hpp"
#include "control/session/code/code.hpp"
#include "control/transfer/data_path.hpp"

namespace onehop::transfer {

class Side {
 public:
  Side(const api::Options& options, api::Handler handler, api::Role role);
  virtual ~Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> set_code(std::string_view code);
  [[nodiscard]] Result<void> set_devices(const api::Devices& devices);
  /// run returns the end of a session whose error was emitted already, or an Error that was not.
  [[nodiscard]] Result<session::SessionEnd> run();
  void interrupt();
  virtual void answer(std::uint64_t /*offer*/, api::Answer) {}
  [[nodiscard]] const Events& events() const { return events_; }

 protected:
  [[nodiscard]] virtual Result<void> check_own() const = 0;
  [[nodiscard]] virtual Result<void> open_own() = 0;
  /// run_own runs io_ until the session is over.
  [[nodiscard]] virtual Result<session::SessionEnd> run_own() = 0;
  /// interrupt_own comes once, on the thread in run(), while run_own() runs io_.
  virtual void interrupt_own() = 0;

  /// use_devices sets the device options of a session.
  void use_devices(session::SessionOptions& options, bool is_pairing) const;
  /// refresh_devices reads again which devices are paired.
  void refresh_devices();
  [[nodiscard]] bool is_interrupted() const noexcept { return is_interrupted_; }
  /// told emits the error of an end that has no account, and returns the end.
  [[nodiscard]] session::SessionEnd told(const session::SessionEnd& end) const;
  /// keep writes an introduced device, and emits Paired.
  [[nodiscard]] Result<void> keep(pair::Peer device);

  Events events_;
  Settings settings_;
  std::optional<Error> fault_;  // of the options
  boost::asio::io_context io_;
  DataPath path_;
  std::optional<session::PairingCode> code_;
  std::shared_ptr<pair::Identity> device_;  // null: there are no paired devices
  std::string peer_name_;  // sending: the paired device to send to; empty: by the code

 private:
  void use_book();
  bool is_remembered_ = false;
  std::optional<pair::PeerBook> book_;
  bool is_book_fault_told_ = false;
  bool is_open_ = false;
  std::atomic<bool> is_interrupted_ = false;
};

[[nodiscard]] std::unique_ptr<Side> make_sender(api::SendOptions options, api::Handler handler);
[[nodiscard]] std::unique_ptr<Side> make_receiver(api::ReceiveOptions options,
                                                  api::Handler handler);

}  // namespace onehop::transfer
