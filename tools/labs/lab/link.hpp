// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The lab's link: three network namespaces and what hangs between them. Built with ip, tc and
// ethtool.
//
//   NAME-a                           NAME-m                             NAME-b
//   mv0 (macvlan, 10.111.0.1)                                           vb (veth, 10.111.0.2)
//    │ an AF_XDP socket here has      ma ─── loss, bridge ────▶ mb ──────▶ │
//    ▼ a real queue below it          ▲ │                       ▲          │
//   va (veth), shaper a->b ───────────┘ │                       └──────────┘
//    ▲                                  │◀── loss, bridge, shaper b->a ────┘
//    └──────────────────────────────────┘
//
// The bridge learns nothing and keeps nothing: what comes in at one port goes out of the other,
// whoever sent it. Only frames for the neighbour bridge itself (01:80:c2:00:00:00 to :0f, IEEE
// 802.1D) end there.
//
// The reverse shaper sits in the middle, because an AF_XDP socket on b's veth passes by b's own
// qdisc. A direct profile has no middle: va and vb are one pair, because the middle costs CPU that
// a comparison of CPU must not count.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "tools/labs/lab/profile.hpp"

namespace onehop::lab {

inline constexpr const char* address_a4 = "10.111.0.1";
inline constexpr const char* address_b4 = "10.111.0.2";
inline constexpr const char* address_a6 = "fd00:111::1";
inline constexpr const char* address_b6 = "fd00:111::2";
inline constexpr const char* interface_a = "mv0";  ///< carries a's addresses
inline constexpr const char* interface_b = "vb";   ///< carries b's addresses
inline constexpr const char* middle_a = "ma";  ///< of the middle: towards a, with the shaper b->a
inline constexpr const char* lower_a = "va";   ///< of host a: the veth with the shaper, below mv0

/// HostNames: the namespaces of the lab NAME.
struct HostNames {
  explicit HostNames(const std::string& lab) : a{lab + "-a"}, m{lab + "-m"}, b{lab + "-b"} {}
  std::string a, m, b;
};

/// build_link makes the namespaces and everything in them; it leaves what it made to tear_down_link
/// where it fails.
[[nodiscard]] Result<void> build_link(const HostNames& hosts, const Profile& profile);

/// set_link_rate changes the rate (and the reverse rate, where that is the same). Takes about 4 ms
/// per direction.
[[nodiscard]] Result<void> set_link_rate(const HostNames& hosts, const Profile& profile,
                                         BytesPerSecond rate);

/// tear_down_link removes the namespaces that exist.
[[nodiscard]] Result<void> tear_down_link(const HostNames& hosts);

}  // namespace onehop::lab
