// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/api/transfer.hpp"

#include "control/transfer/side.hpp"

namespace onehop::api {

namespace {

Error error_of(const Result<void>& result) {
  return result.has_value() ? Error{} : transfer::to_api(result.error());
}

}  // namespace

std::string Error::message() const { return transfer::from_api(*this).message(); }

Transfer::Transfer(SendOptions options, Handler handler)
    : side_{transfer::make_sender(std::move(options), std::move(handler))} {}
Transfer::Transfer(ReceiveOptions options, Handler handler)
    : side_{transfer::make_receiver(std::move(options), std::move(handler))} {}
Transfer::~Transfer() = default;

Error Transfer::check() const { return error_of(side_->check()); }
Error Transfer::open() { return error_of(side_->open()); }
Error Transfer::set_code(std::string_view code) { return error_of(side_->set_code(code)); }
Error Transfer::set_devices(const Devices& devices) {
  return error_of(side_->set_devices(devices));
}
void Transfer::interrupt() { side_->interrupt(); }
void Transfer::answer(std::uint64_t offer, Answer answer) { side_->answer(offer, answer); }

Error Transfer::run() {
  const auto end = side_->run();
  if (end.has_value())
    return end.value().code == ExitCode::done ? Error{} : transfer::to_api(end.value().error);
  const Error error = transfer::to_api(end.error());
  side_->events().emit(error);
  return error;
}

}  // namespace onehop::api
