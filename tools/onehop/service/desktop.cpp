// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/desktop.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "tools/onehop/confine/helper_process.hpp"
#include "tools/onehop/service/notifications.hpp"
#include "tools/onehop/text/conflicts.hpp"
#include "tools/onehop/text/quantity.hpp"

namespace onehop::tool {

namespace {

// More lines are cut off by the daemons, and what nobody sees nobody has agreed to: the rest is
// counted.
constexpr std::size_t names_max = 8, names_bytes_max = 1500;

std::string names_of(const api::Offer& offer) {
  std::string text;
  std::size_t shown = 0;
  for (const api::Offer::File& file : offer.files) {
    const std::string line = "\n" + offered_text(file);
    if (shown == names_max || text.size() + line.size() > names_bytes_max) break;
    text += line;
    ++shown;
  }
  const std::size_t more = offer.files.size() - shown;
  return more == 0 ? text : text + fmt::format("\nand {} more", more);
}

/// place_of is what a file manager shows: the entry of the session's folder that was done last; the
/// folder itself, with a '/' at its end, where that name is an escaped one. Empty: the folder's is.
std::string place_of(const api::End& end) {
  constexpr char escape = '\\';
  if (!end.directory.starts_with('/') || end.directory.find(escape) != std::string::npos) return {};
  std::string folder = end.directory;
  if (!folder.ends_with('/')) folder += '/';
  if (!end.path.starts_with(folder) || end.path == folder) return folder;
  std::string entry = end.path.substr(0, end.path.find('/', folder.size()));
  return entry.find(escape) == std::string::npos ? entry : folder;
}

}  // namespace

bool Desktop::is_possible() {
  // As sd-bus looks for it.
  if (const char* const address = ::secure_getenv("DBUS_SESSION_BUS_ADDRESS"))
    return *address != '\0';
  const char* const folder = ::secure_getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && ::access((std::string{folder} + "/bus").c_str(), F_OK) == 0;
}

Result<std::unique_ptr<Desktop>> Desktop::start() {
  ONEHOP_TRY(socket, confine::start_powerless_helper("onehop-desktop", run_notifications));
  return std::unique_ptr<Desktop>{new Desktop{std::move(socket)}};
}

void Desktop::listen(boost::asio::io_context& io, Handler handler) {
  handler_ = std::move(handler);
  events_.emplace(io, socket_.release());
  wait();
}

void Desktop::stop() {
  boost::system::error_code ignored;
  if (events_) events_->close(ignored);
}

void Desktop::wait() {
  events_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this](const boost::system::error_code& error) {
                        if (error || !events_->is_open()) return;
                        std::array<char, notice_bytes_max> room;
                        const ssize_t got = ::recv(events_->native_handle(), room.data(),
                                                   room.size(), MSG_DONTWAIT);
                        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                          return give_up();
                        if (got > 0) take({room.data(), static_cast<std::size_t>(got)});
                        wait();
                      });
}

void Desktop::take(const std::string& message) {
  const std::vector<std::string> fields = split_notice(message);
  if (fields.size() == 2 && fields[0] == "trouble") return handler_.trouble(fields[1]);
  if (fields.size() != 4 || fields[0] != "answer") return;
  std::uint64_t offer = 0;
  std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), offer);
  if (asked_.erase(offer) == 0) return;
  if (!fields[3].empty()) handler_.trouble(fields[3]);
  handler_.answer(offer, fields[2] == "accept"   ? api::Answer::accept
                         : fields[2] == "refuse" ? api::Answer::refuse
                                                 : api::Answer::unasked);
}

void Desktop::give_up() {
  stop();
  handler_.trouble("the process that shows notifications has ended");
  for (const std::uint64_t offer : std::exchange(asked_, {}))
    handler_.answer(offer, api::Answer::unasked);
}

bool Desktop::send(const std::vector<std::string>& fields) {
  const std::string message = join_notice(fields);
  return events_ && events_->is_open() && message.size() <= notice_bytes_max &&
         ::send(events_->native_handle(), message.data(), message.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void Desktop::ask(const api::Offer& offer) {
  asked_.insert(offer.id);
  if (send({"ask", std::to_string(offer.id), fmt::format("Take files of '{}'?", offer.device),
            offer_line(offer) + names_of(offer)}))
    return;
  asked_.erase(offer.id);
  handler_.answer(offer.id, api::Answer::unasked);
}

void Desktop::withdraw(std::uint64_t offer) {
  if (asked_.erase(offer) > 0) (void)send({"gone", std::to_string(offer)});
}

void Desktop::tell(const api::End& end) {
  (void)send({"done",
              fmt::format("Received {} file{} of '{}'", end.files_total,
                          end.files_total == 1 ? "" : "s", end.device),
              fmt::format("{} in {}", format_bytes(end.bytes_total),
                          end.files_total == 1 ? end.path : end.directory),
              place_of(end)});
}

}  // namespace onehop::tool
