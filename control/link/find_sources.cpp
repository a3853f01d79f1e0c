// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The kernel's side of LinkWatch: which sources an interface has, and whether it is there.
#include <net/if.h>
#include <sys/ioctl.h>

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

LinkState read_link_state(const Fd& socket, int ifindex) {
  ifreq request{};
  request.ifr_ifindex = ifindex;
  if (::ioctl(socket.get(), SIOCGIFNAME, &request) != 0) return {};
  LinkState state{.name = request.ifr_name};
  constexpr unsigned running = IFF_UP | IFF_RUNNING;
  state.is_running = ::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 &&
                     (static_cast<unsigned>(request.ifr_flags) & running) == running;
  return state;
}

}  // namespace onehop::link
