// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/driver_quirks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace onehop {

namespace {

// Sources: a file of Linux with the commit that was read, or the test of ours that shows it.
constexpr std::array quirks{
    DriverQuirk{.driver = "igb",
                .key = "program-first",
                .kernels = "6.18",
                .quirk = "a queue takes zero-copy memory only while an XDP program is attached; "
                         "without one nothing is sent",
                .answer = "attaches its program before it binds, at the sending end too",
                .source = "igb_xsk.c igb_xsk_pool() at 2369f05661ef; seen on QEMU's igb"},
    DriverQuirk{.driver = "igb",
                .key = "fill-before-bind",
                .kernels = "6.18",
                .quirk = "nothing is ever received when the fill ring is empty at the bind",
                .answer = "fills the ring before it binds, on every driver",
                .source = "seen on QEMU's igb"},
    DriverQuirk{
        .driver = "igb",
        .key = "chunk-of-4096",
        .kernels = "6.18",
        .quirk = "fills whole kilobytes alone: of a chunk of 2048 bytes, with 1792 free, 1024",
        .answer = "takes chunks of 4096 bytes for zero-copy, on every driver",
        .source = "igb_main.c igb_setup_srrctl(); seen on QEMU's igb"},
    DriverQuirk{.driver = "igb",
                .key = "link-bounce",
                .kernels = "6.18",
                .quirk = "the link goes down for 1 to 3 s when a program is attached",
                .answer = "waits up to 5 s for the carrier, on every driver",
                .source = "seen on QEMU's igb"},
    DriverQuirk{.driver = "igb",
                .key = "qemu-fragments",
                .kernels = "6.18, QEMU 10's card alone",
                .quirk = "makes IP fragments of a segmented batch (UDP_SEGMENT)",
                .answer = "nothing: ethtool -K IF tx-udp-segmentation off",
                .source = "tests/vm/cards"},
    DriverQuirk{.driver = "ice",
                .key = "carrier-off",
                .kernels = "since 9da75a511c55 (2024)",
                .quirk = "the carrier is off while a queue is bound for zero-copy",
                .answer = "waits up to 5 s for the carrier; not tried on a card",
                .source = "ice_xsk.c at 9da75a511c55"},
    DriverQuirk{.driver = "virtio_net",
                .key = "dma-interface",
                .kernels = "6.18, 7.2",
                .quirk = "zero-copy needs rings behind the DMA interface: else EINVAL at the bind",
                .answer = "names the option of the virtual machine that is missing",
                .source = "virtio_net.c virtnet_xsk_pool_enable(); seen under QEMU",
                .errno_value = EINVAL,
                .remedy = "give the virtual card disable-legacy=on,iommu_platform=on (QEMU)"},
    DriverQuirk{.driver = "virtio_net",
                .key = "queue-reset",
                .kernels = "6.18, 7.2",
                .quirk = "zero-copy needs queues that can be reset: else ENOENT at the bind",
                .answer = "names the option of the virtual machine that is missing",
                .source = "virtio_net.c virtnet_xsk_pool_enable(); seen under QEMU",
                .errno_value = ENOENT,
                .remedy = "give the virtual card queue_reset=on (QEMU 7.2 or later)"},
    DriverQuirk{.driver = "virtio_net",
                .key = "header-of-elsewhere",
                .kernels = "6.18, as a module",
                .quirk = "takes the header of zero-copy frames from a page that is not its own: "
                         "from one boot to the next, a host's tap may refuse all of them",
                .answer = "the path is not proven within 2 s: names --io udp",
                .source = "virtio_net.c virtnet_xsk_pool_enable(), which maps an address of a "
                          "module; tests/vm/lost_headers"},
    DriverQuirk{.driver = "veth",
                .key = "peer-queues",
                .kernels = "6.18",
                .quirk = "no native XDP while the peer sends on more queues than this end receives "
                         "on: ENOSPC at the attach",
                .answer = "names the remedy",
                .source = "veth.c veth_xdp_set(); tests/lab/doctor_test.py",
                .errno_value = ENOSPC,
                .remedy = "the veth peer sends on more queues than this end receives on: "
                          "`ethtool -L`"},
    DriverQuirk{.driver = "Wi-Fi",
                .key = "no-native-xdp",
                .kernels = "6.18",
                .quirk = "no driver has native XDP or zero-copy",
                .answer = "takes UDP under --io auto; --xdp-mode skb works on all",
                .source = "Debian's 6.18.15: no module of drivers/net/wireless refers to "
                          "bpf_dispatcher_xdp_func; tests/vm/live"},
    DriverQuirk{.driver = "Wi-Fi",
                .key = "no-qdisc",
                .kernels = "since 6.2 all of mac80211",
                .quirk = "frames wait in mac80211, and the queue discipline is empty",
                .answer = "reads mac80211's queues (TXQ statistics)",
                .source = "mac80211 at 107395f9cf44; tests/vm/live"},
    DriverQuirk{.driver = "Wi-Fi",
                .key = "status-of-batches",
                .kernels = "6.12",
                .quirk = "frames of a segmented batch (UDP_SEGMENT) are reported neither "
                         "acknowledged nor failed; under 6.18 all are",
                .answer = "takes the reports that come for a sample",
                .source = "tests/vm/README.md"},
    DriverQuirk{.driver = "mt792*",
                .key = "group-needs-cnm",
                .kernels = "at 0335c034e726",
                .quirk = "firmware without CNM: Wi-Fi Direct is listed, and no combination of "
                         "interfaces has it",
                .answer = "doctor shows `beside-network`; the network has to be left first",
                .source = "mt76/mt792x_core.c mt792x_init_wiphy()"},
    DriverQuirk{.driver = "mac80211_hwsim",
                .key = "made-up-figures",
                .kernels = "6.18",
                .quirk = "bit rates, airtime, retries and survey times are not a radio's",
                .answer = "nothing: figures of this driver say nothing of radios",
                .source = "tests/vm/README.md"},
};

}  // namespace

bool DriverQuirk::is_of(std::string_view name, bool is_wifi) const noexcept {
  if (driver == "Wi-Fi") return is_wifi;
  if (driver.ends_with('*')) return name.starts_with(driver.substr(0, driver.size() - 1));
  return name == driver;
}

std::span<const DriverQuirk> driver_quirks() noexcept { return quirks; }

std::string quirk_remedy(std::string_view driver, int errno_value, const std::string& otherwise) {
  const auto* const found = std::ranges::find_if(quirks, [&](const DriverQuirk& quirk) {
    return quirk.errno_value == errno_value && errno_value != 0 && quirk.is_of(driver, false);
  });
  if (found == quirks.end()) return otherwise;
  return std::string{found->remedy} + (otherwise.empty() ? "" : "; or " + otherwise);
}

}  // namespace onehop
