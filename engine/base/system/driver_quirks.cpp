// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/driver_quirks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "engine/base/fd.hpp"

namespace onehop {

namespace {

// Sources: a file of Linux with the commit that was read, or the test of ours that shows it.
constexpr std::array quirks{
    DriverQuirk{.driver = "kernel",
                .key = "copy-transmit-panic",
                .kernels = "6.16.8 to 6.16.12, 6.17 to 6.17.10, 6.18-rc (CVE-2025-40290)",
                .quirk = "a frame that AF_XDP sends in copy mode, on any driver, may panic the "
                         "machine",
                .answer = "--io auto takes UDP in place of copy mode, doctor tries none, a named "
                          "--io warns first; told by the kernel's type information or its version",
                .source = "net/xdp/xsk.c at 30f241fcf52a, mended by 0ebc27a4c67d (stable "
                          "c5ea2e50b5c9); not seen here"},
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
                .source = "seen on QEMU's igb",
                .takes_link_down = true},
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
                .source = "ice_xsk.c at 9da75a511c55",
                .takes_link_down = true},
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
    DriverQuirk{
        .driver = "virtio_net",
        .key = "header-of-elsewhere",
        .kernels = "6.18, as a module",
        .quirk = "takes the header of zero-copy frames from a page that is not its own: "
                 "from one boot to the next, a host's tap may refuse all of them",
        .answer =
            "--io auto goes on over UDP when no frame came back for 2 s; a named --io names it",
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

// Version: the first numbers of a release, "6.17.0-8-generic" for instance.
struct Version {
  int major = 0, minor = 0, patch = 0;
  bool is_candidate = false;  // -rc
};

Version version_of(std::string_view release) noexcept {
  Version version;
  const char* at = release.data();
  const char* const end = at + release.size();
  for (int* number : {&version.major, &version.minor, &version.patch}) {
    const auto [rest, error] = std::from_chars(at, end, *number);
    if (error != std::errc{}) break;
    at = rest;
    if (at == end || *at != '.') break;
    ++at;
  }
  version.is_candidate = release.find("-rc") != std::string_view::npos;
  return version;
}

bool has_faulty_version(const Version& version) noexcept {
  if (version.major != 6) return false;
  if (version.minor == 16) return version.patch >= 8;  // its series ended without the mend
  if (version.minor == 17) return version.patch <= 10;
  return version.minor == 18 && version.patch == 0 && version.is_candidate;
}

CopyTransmit look_at_kernel() {
  utsname names{};
  (void)::uname(&names);
  // The kernel hands over a page at a call, so the room for all 5 MB is made once: made anew for
  // each call, it was a fifth of what a small transfer costs.
  const Fd file{::open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  std::string btf;
  if (file.is_open() && ::fstat(file.get(), &status) == 0)
    btf.resize(static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)));
  std::size_t read_bytes = 0;
  for (ssize_t got = 1; got > 0 && read_bytes < btf.size();) {
    got = ::read(file.get(), btf.data() + read_bytes, btf.size() - read_bytes);
    read_bytes += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  btf.resize(read_bytes);
  return judge_copy_transmit(names.release, find_btf_words(btf));
}

}  // namespace

std::string link_warning(std::string_view driver, std::string_view interface) {
  const auto* const found = std::ranges::find_if(quirks, [&](const DriverQuirk& quirk) {
    return quirk.takes_link_down && quirk.is_of(driver, false);
  });
  if (found == quirks.end()) return {};
  return "AF_XDP on " + std::string{interface} + " (" + std::string{driver} +
         "): " + std::string{found->quirk} + "; what else uses it is interrupted";
}

BtfWords find_btf_words(std::string_view btf) noexcept {
  // Names stand between zeros, of which there are many: their own letters are looked for.
  constexpr std::string_view stem = "xsk_addr", fault{"xsk_addr_head\0", 14},
                             mend{"xsk_addrs\0", 10};
  BtfWords words;
  for (std::size_t at = btf.find(stem); at != std::string_view::npos;
       at = btf.find(stem, at + stem.size())) {
    if (at == 0 || btf[at - 1] != '\0') continue;
    words.has_fault = words.has_fault || btf.substr(at).starts_with(fault);
    words.has_mend = words.has_mend || btf.substr(at).starts_with(mend);
  }
  return words;
}

CopyTransmit judge_copy_transmit(std::string_view release, BtfWords words) {
  if (words.has_fault != words.has_mend)
    return {.is_sound = words.has_mend, .told_by = "its type information"};
  return {.is_sound = !has_faulty_version(version_of(release)),
          .told_by = "Linux " + std::string{release}};
}

const CopyTransmit& read_copy_transmit() {
  static const CopyTransmit known = look_at_kernel();
  return known;
}

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
