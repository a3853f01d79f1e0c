// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/side.hpp"

#include <boost/asio/post.hpp>

#include "engine/base/descriptors.hpp"
#include "engine/base/memory.hpp"
#include "engine/disk/confined.hpp"

namespace onehop::transfer {

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
  ONEHOP_TRYV(disk::check_openat2());
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

}  // namespace onehop::transfer
