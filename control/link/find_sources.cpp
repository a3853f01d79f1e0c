// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The kernel's side of LinkWatch: which sources an interface has, and what rtnetlink tells of it.
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include <array>

#include "control/link/emulated_source.hpp"
#include "control/link/link_watch.hpp"
#include "control/link/nl80211_source.hpp"
#include "control/link/softnet_source.hpp"
#include "control/link/wired_source.hpp"

namespace onehop::link {

namespace {

// add keeps the source, or the reason why it is not there, and returns it.
template <class Source>
std::shared_ptr<Source> add(SourceSet& set, const char* name, Result<Source>&& opened) {
  FoundSource& found = set.emplace_back(FoundSource{.name = name, .source = nullptr, .reason = {}});
  if (!opened) {
    found.reason = opened.error().cause;
    return nullptr;
  }
  auto source = std::make_shared<Source>(std::move(opened).value());
  found.source = source;
  found.reason = source->remark();
  return source;
}

class NetlinkEvents final : public LinkEvents {
 public:
  NetlinkEvents(NetlinkSocket&& socket, int ifindex) noexcept
      : socket_{std::move(socket)}, ifindex_{ifindex} {}

  std::optional<LinkState> poll() override {
    bool is_ours = false;
    // Events only say that something happened: several may wait, and a full socket drops some. The
    // state is asked for.
    const bool is_whole = socket_.receive_pending([&](const nlmsghdr* message) {
      if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) return;
      if (message->nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) return;
      is_ours |=
          static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(message))->ifi_index == ifindex_;
    });
    if (!is_ours && is_whole) return std::nullopt;
    return read_link_state(ifindex_);
  }

 private:
  NetlinkSocket socket_;
  int ifindex_;
};

}  // namespace

Result<SourceSet> find_sources(const LinkOptions& options) {
  SourceSet set;
  const auto qdisc = add(set, "qdisc", QdiscSource::open(options.ifindex, options.has_qdisc));
  set.back().is_of_link = false;
  if (!options.model_path.empty()) {
    ONEHOP_TRY(emulated, EmulatedSource::open(options.model_path));
    add(set, "emulated", Result<EmulatedSource>{std::move(emulated)});
  } else if (!add(set, "nl80211", Nl80211Source::open(options.ifindex, options.peer))) {
    std::string& reason = set.back().reason;
    if (reason == errno_text(ENODEV) || reason == errno_text(EOPNOTSUPP))
      reason = "it is no Wi-Fi interface";
    add(set, "wired", WiredSource::open(options.ifindex, options.has_qdisc ? qdisc : nullptr));
  }
  add(set, "softnet", SoftnetSource::open());
  return set;
}

Result<std::unique_ptr<LinkEvents>> make_link_events(int ifindex) {
  constexpr std::array<unsigned, 1> groups{RTNLGRP_LINK};
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE, groups));
  return std::unique_ptr<LinkEvents>{std::make_unique<NetlinkEvents>(std::move(socket), ifindex)};
}

LinkState read_link_state(int ifindex) {
  const auto link = read_interface(ifindex);
  if (!link) return {};
  return {.exists = true,
          .is_running = link.value().is_running,
          .name = link.value().name,
          .kind = link.value().kind};
}

}  // namespace onehop::link
