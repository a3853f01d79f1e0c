// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-dpdk.so as load() sees it.
#include "engine/port/dpdk/module.hpp"

#include <string_view>

#include "engine/port/dpdk/dpdk_port.hpp"
#include "engine/port/dpdk/eal.hpp"

namespace onehop::dpdk {

namespace {

class OpenDevice final : public Device {
 public:
  OpenDevice(std::unique_ptr<Eal> eal, std::unique_ptr<DpdkDevice> device)
      : eal_{std::move(eal)}, device_{std::move(device)} {}
  const DeviceFacts& facts() const noexcept override { return device_->facts(); }
  bool is_huge() const noexcept override { return eal_->is_huge(); }
  Result<std::unique_ptr<ModulePort>> open_port(DpdkPortConfig config) override {
    ONEHOP_TRY(port, DpdkPort::open(*device_, std::move(config)));
    return std::unique_ptr<ModulePort>{std::move(port)};
  }

 private:
  std::unique_ptr<Eal> eal_;
  std::unique_ptr<DpdkDevice> device_;
};

class LoadedModule final : public Module {
 public:
  std::string library_version() const override { return dpdk_version(); }
  Result<std::unique_ptr<Device>> open(const EalArguments& arguments,
                                       std::optional<QueueScope> scope) override {
    ONEHOP_TRY(eal, Eal::start(arguments));
    ONEHOP_TRY(device, DpdkDevice::open(*eal, {.scope = scope}));
    return std::unique_ptr<Device>{new OpenDevice{std::move(eal), std::move(device)}};
  }
};

}  // namespace

}  // namespace onehop::dpdk

extern "C" [[gnu::visibility("default")]] onehop::dpdk::Module* onehop_dpdk(const char* version) {
  static onehop::dpdk::LoadedModule module;
  return std::string_view{version} == ONEHOP_VERSION ? &module : nullptr;
}
