// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/notifications.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "control/bus/bus.hpp"

namespace onehop::tool {

namespace {

using bus::Bus;
using Words = std::vector<std::string>;

//= Desktop Notifications Specification 1.2
const std::string notifications = "org.freedesktop.Notifications";
const Bus::Target daemon_target{notifications, "/org/freedesktop/Notifications", notifications};
constexpr std::int64_t urgency_low = 0, urgency_critical = 2;  // a critical one stays
constexpr std::int64_t never = 0, as_the_daemon_likes = -1;    // when it goes by itself
// A session that brought files leaves a notification; older ones of them lose their button.
constexpr std::size_t shown_max = 64;

const std::string file_manager = "org.freedesktop.FileManager1";

class Notifications {
 public:
  explicit Notifications(Fd socket) : socket_{std::move(socket)} {}

  void run() {
    for (;;) {
      if (bus_ && !bus_->process([this](const Bus::Signal& signal) { on(signal); })) {
        bus_.reset();
        lose_daemon("the session bus is gone");
      }
      pollfd waits[] = {{socket_.get(), POLLIN, 0},
                        {bus_ ? bus_->fd() : -1, bus_ ? bus_->events() : short{0}, 0}};
      if (::poll(waits, 2, -1) < 0 && errno != EINTR) return;
      if (waits[0].revents != 0 && !read()) break;
    }
    for (const auto& [number, one] : shown_)
      if (!one.offer.empty()) close(number);
  }

 private:
  struct Shown {
    std::string offer;  // that it asks about; empty: it tells of a session
    std::string place;
  };

  bool read() {
    std::array<char, notice_bytes_max> room;
    const ssize_t got = ::recv(socket_.get(), room.data(), room.size(), 0);
    if (got <= 0) return got < 0 && errno == EINTR;
    const Words fields = split_notice({room.data(), static_cast<std::size_t>(got)});
    if (fields.size() == 4 && fields[0] == "ask") {
      if (const auto asked = ask(fields[1], fields[2], fields[3]); asked.has_error())
        answer(fields[1], "none", asked.error().attempt + ": " + asked.error().cause);
    } else if (fields.size() == 4 && fields[0] == "done") {
      if (const auto told = tell(fields[1], fields[2], fields[3]); told.has_error())
        send({"trouble", told.error().attempt + ": " + told.error().cause});
    } else if (fields.size() == 2 && fields[0] == "gone") {
      const auto shown = std::ranges::find_if(
          shown_, [&](const auto& one) { return one.second.offer == fields[1]; });
      if (shown != shown_.end()) close(shown_.extract(shown).key());
    }
    return true;
  }

  Result<void> ask(const std::string& offer, const std::string& summary, const std::string& body) {
    const std::string attempt = "ask by a notification";
    ONEHOP_TRY(able, capabilities(attempt));
    if (std::ranges::count(able, "actions") == 0)
      return Error{ExitCode::io_unavailable, attempt, "the notification daemon has no buttons", ""};
    const Words buttons{"accept", "Accept", "refuse", "Refuse"};
    ONEHOP_TRY(number, notify(attempt, able, summary, body, buttons, urgency_critical, never));
    shown_[number] = {.offer = offer, .place = {}};
    return success();
  }

  Result<void> tell(const std::string& summary, const std::string& body, std::string place) {
    const std::string attempt = "tell by a notification";
    ONEHOP_TRY(able, capabilities(attempt));
    const Words buttons = place.empty() ? Words{} : Words{"show", "Show in folder"};
    ONEHOP_TRY(number,
               notify(attempt, able, summary, body, buttons, urgency_low, as_the_daemon_likes));
    const auto oldest =
        std::ranges::find_if(shown_, [](const auto& one) { return one.second.offer.empty(); });
    if (shown_.size() >= shown_max && oldest != shown_.end()) shown_.erase(oldest);
    if (!place.empty()) shown_[number] = {.offer = {}, .place = std::move(place)};
    return success();
  }

  /// capabilities starts the daemon where the bus knows how.
  Result<Words> capabilities(const std::string& attempt) {
    if (!bus_) {
      ONEHOP_TRY(opened, Bus::open_session());
      ONEHOP_TRYV(opened.listen(notifications, notifications));
      ONEHOP_TRYV(opened.listen_owner(notifications));
      bus_.emplace(std::move(opened));
    }
    ONEHOP_TRY(read, bus_->call_for(daemon_target, "GetCapabilities", {}, attempt));
    // That it was started is no news any more when it shows something.
    if (!bus_->process([this](const Bus::Signal& signal) { on(signal); }))
      return Error{ExitCode::io_unavailable, attempt, "the session bus is gone", ""};
    const auto* const words = std::get_if<Words>(&read);
    return words == nullptr ? Words{} : *words;
  }

  Result<std::int64_t> notify(const std::string& attempt, const Words& able,
                              const std::string& summary, const std::string& body,
                              const Words& buttons, std::int64_t urgency, std::int64_t ends_ms) {
    const bool has_markup = std::ranges::count(able, "body-markup") > 0;
    bus::Dict hints;
    hints["urgency"] = {bus::Number{'y', urgency}};
    hints["category"] = {std::string{"transfer"}};
    hints["desktop-entry"] = {std::string{"onehop"}};
    ONEHOP_TRY(shown, bus_->call_for(daemon_target, "Notify",
                                     {{std::string{"onehop"}},
                                      {bus::Number{'u', 0}},
                                      {std::string{"folder-download"}},
                                      {summary},
                                      {has_markup ? markup_of(body) : body},
                                      {buttons},
                                      {hints},
                                      {ends_ms}},
                                     attempt));
    const auto* const number = std::get_if<std::int64_t>(&shown);
    if (number != nullptr) return *number;
    return Error{ExitCode::io_unavailable, attempt, "the notification daemon gave no number", ""};
  }

  void on(const Bus::Signal& signal) {
    if (signal.name == "NameOwnerChanged") return lose_daemon("the notification daemon has ended");
    const auto number = signal.at<std::int64_t>(0);
    const auto found = shown_.find(number);
    if (found == shown_.end()) return;
    const bool is_closed = signal.name == "NotificationClosed";
    if (!is_closed && signal.name != "ActionInvoked") return;
    const Shown shown = found->second;
    shown_.erase(found);
    if (!is_closed) close(number);  // not every daemon does
    // One that was closed, by whom ever, nobody has agreed to.
    const bool is_accepted = !is_closed && signal.text == "accept";
    if (!shown.offer.empty()) return answer(shown.offer, is_accepted ? "accept" : "refuse", "");
    if (is_closed) return;
    if (const auto opened = show(shown.place); opened.has_error())
      send({"trouble", opened.error().attempt + ": " + opened.error().cause});
  }

  Result<void> show(const std::string& place) {
    const bool is_folder = place.ends_with('/');
    ONEHOP_TRYV(bus_->call_for({file_manager, "/org/freedesktop/FileManager1", file_manager},
                               is_folder ? "ShowFolders" : "ShowItems",
                               {{Words{uri_of(place)}}, {std::string{}}}, "show what came"));
    return success();
  }

  void close(std::int64_t number) {
    if (!bus_) return;
    (void)bus_->call_for(daemon_target, "CloseNotification", {{bus::Number{'u', number}}},
                         "take a notification away");
  }

  void lose_daemon(const char* why) {
    for (const auto& [number, one] : std::exchange(shown_, {}))
      if (!one.offer.empty()) answer(one.offer, "none", why);
  }

  void answer(const std::string& offer, const std::string& how, const std::string& why) const {
    send({"answer", offer, how, why});
  }
  void send(const Words& fields) const {
    const std::string notice = join_notice(fields).substr(0, notice_bytes_max);
    (void)::send(socket_.get(), notice.data(), notice.size(), MSG_NOSIGNAL);
  }

  const Fd socket_;
  std::optional<Bus> bus_;
  std::map<std::int64_t, Shown> shown_;  // by the daemon's numbers
};

}  // namespace

std::string join_notice(const std::vector<std::string>& fields) {
  std::string notice;
  for (const std::string& field : fields) notice += field + '\0';
  return notice;
}

std::vector<std::string> split_notice(std::string_view notice) {
  std::vector<std::string> fields;
  while (!notice.empty()) {
    const std::size_t end = std::min(notice.find('\0'), notice.size());
    fields.emplace_back(notice.substr(0, end));
    notice.remove_prefix(std::min(end + 1, notice.size()));
  }
  return fields;
}

std::string markup_of(std::string_view text) {
  std::string markup;
  for (const char c : text)
    markup += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string{c};
  return markup;
}

std::string uri_of(std::string_view path) {
  std::string uri = "file://";
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view{"/-._~"}.find(c) != std::string_view::npos;
    uri += is_plain ? std::string{c} : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

void run_notifications(Fd socket) { Notifications{std::move(socket)}.run(); }

}  // namespace onehop::tool
