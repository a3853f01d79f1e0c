// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Events: the way from the parts of a transfer to its handler. One thread, the one in run().
#pragma once

#include <string>
#include <utility>

#include "control/transfer/settings.hpp"

namespace onehop::transfer {

class Events {
 public:
  explicit Events(api::Handler handler) : handler_{std::move(handler)} {}
  void emit(const api::Event& event) const {
    if (handler_) handler_(event);
  }
  void say(std::string text) const { emit(api::Notice{std::move(text), false}); }
  void warn(std::string text) const { emit(api::Notice{std::move(text), true}); }

 private:
  api::Handler handler_;
};

}  // namespace onehop::transfer
