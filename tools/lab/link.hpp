// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The lab's link: three network namespaces and what hangs between them. Built with ip, tc and ethtool.
//
//   NAME-a                            NAME-m                            NAME-b
//   lan (macvlan, 10.111.0.1)                                           lan (veth, 10.111.0.2)
//    │  an AF_XDP socket here has      to-a ── loss, redirect ─▶ to-b ─▶ │
//    ▼  a real queue below it           ▲  │                      ▲ │    │
//   lower (veth) ── shaper a->b ────────┘  │◀─ loss, redirect ──────┘◀───┘
//    ▲                                     shaper b->a
//    └─────────────────────────────────────┘
//
// The reverse shaper sits in the middle, because an AF_XDP socket on b's veth passes by b's own qdisc.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "tools/lab/profile.hpp"

namespace onehop::lab {

inline constexpr const char* address_a4 = "10.111.0.1";
inline constexpr const char* address_b4 = "10.111.0.2";
inline constexpr const char* address_a6 = "fd6f:6e65:686f::1";
inline constexpr const char* address_b6 = "fd6f:6e65:686f::2";
inline constexpr const char* host_interface = "lan";     ///< of both hosts
inline constexpr const char* shaped_interface = "lower"; ///< of host a: the veth with the shaper, below lan

/// HostNames: the namespaces of the lab NAME.
struct HostNames {
  explicit HostNames(const std::string& lab) : a{lab + "-a"}, m{lab + "-m"}, b{lab + "-b"} {}
  std::string a, m, b;
};

/// build_link makes the namespaces and everything in them; it leaves what it made to tear_down_link where it fails.
[[nodiscard]] Result<void> build_link(const HostNames& hosts, const Profile& profile);

/// set_link_rate changes the rate (and the reverse rate, where that is the same). Takes about 4 ms per direction.
[[nodiscard]] Result<void> set_link_rate(const HostNames& hosts, const Profile& profile, BytesPerSecond rate);

/// tear_down_link removes the namespaces that exist.
[[nodiscard]] Result<void> tear_down_link(const HostNames& hosts);

}  // namespace onehop::lab
