// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "transfer/transfer.hpp"

#include <boost/asio/post.hpp>

#include "engine/base/descriptors.hpp"
#include "engine/base/memory.hpp"
#include "engine/file/confined.hpp"
#include "transfer/side.hpp"

namespace onehop::host {

Side::Side(const api::Options& options, api::Handler handler, std::string role)
    : events_{std::move(handler)},
      settings_{options},
      path_{io_, settings_, events_, std::move(role)} {
  if (auto read = read_settings(options); read.has_value())
    settings_ = std::move(read).value();
  else
    fault_ = read.error();
}

Result<void> Side::check() const {
  ONEHOP_TRYV(check_own());
  if (fault_) return *fault_;
  return success();
}

Result<void> Side::open() {
  ONEHOP_TRYV(check());
  ONEHOP_TRYV(raise_descriptor_limit());
  ONEHOP_TRYV(file::check_openat2());
  is_open_ = true;
  return open_own();
}

Result<void> Side::set_code(std::string_view code) {
  ONEHOP_TRY(pairing, session::PairingCode::from_text(code));
  code_ = std::move(pairing);
  return success();
}

Result<session::SessionEnd> Side::run() {
  try {
    if (!is_open_) {
      ONEHOP_TRYV(open());
    }
    auto end = run_own();
    path_.close();
    return end;
  } catch (const std::bad_alloc& refused) {
    return memory_error("run", refused);
  }
}

void Side::interrupt() {
  // What is posted before run() is the first that it does.
  if (!is_interrupted_.exchange(true)) boost::asio::post(io_, [this] { interrupt_own(); });
}

}  // namespace onehop::host

namespace onehop::api {

namespace {

Error error_of(const Result<void>& result) {
  return result.has_value() ? Error{} : host::to_api(result.error());
}

}  // namespace

std::string Error::message() const { return host::from_api(*this).message(); }

Transfer::Transfer(SendOptions options, Handler handler)
    : side_{host::make_sender(std::move(options), std::move(handler))} {}
Transfer::Transfer(ReceiveOptions options, Handler handler)
    : side_{host::make_receiver(std::move(options), std::move(handler))} {}
Transfer::~Transfer() = default;

Error Transfer::check() const { return error_of(side_->check()); }
Error Transfer::open() { return error_of(side_->open()); }
Error Transfer::set_code(std::string_view code) { return error_of(side_->set_code(code)); }
void Transfer::interrupt() { side_->interrupt(); }
void Transfer::answer(std::uint64_t offer, Answer answer) { side_->answer(offer, answer); }

Error Transfer::run() {
  const auto end = side_->run();
  if (end.has_value())
    return end.value().code == ExitCode::done ? Error{} : host::to_api(end.value().error);
  const Error error = host::to_api(end.error());
  side_->events().emit(error);
  return error;
}

}  // namespace onehop::api
