// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/rate_log.hpp"

#include <unistd.h>

#include <cerrno>

#include "engine/base/time.hpp"

namespace onehop::lab {

Result<RateLog> RateLog::create(const std::string& path, const Profile& profile) {
  if (!profile.rate)
    return Error{ExitCode::usage, "write the link's rate to " + path,
                 profile.wifi ? "the profile " + profile.name +
                                    " is a Wi-Fi channel, on which each frame has a rate of its own"
                              : "the profile " + profile.name + " has no rate",
                 profile.wifi
                     ? "The sender's trace has what the link told: onehop send --link-model"
                     : "Choose a profile with a rate, or leave out --rate-log"};
  std::FILE* file = std::fopen(path.c_str(), "wxe");
  if (file == nullptr)
    return errno_error(ExitCode::local_file_error, "write the link's rate to " + path,
                       errno == EEXIST ? "Choose another name" : "Check the folder's permissions");
  RateLog log{path, file};
  if (std::fprintf(file, "# onehop lab run: profile %s\nt_ns,rate_bytes_per_s\n",
                   profile.name.c_str()) < 0)
    log.failed_errno_ = errno;
  return RateLog{std::move(log)};
}

void RateLog::add(BytesPerSecond rate) noexcept {
  has_rate_ = true;
  const auto now = static_cast<long long>(monotonic_now().time_since_epoch().count());
  if (std::fprintf(file_.get(), "%lld,%lld\n", now, static_cast<long long>(rate.count)) < 0 &&
      failed_errno_ == 0)
    failed_errno_ = errno;
}

Result<void> RateLog::close() {
  if (std::fclose(file_.release()) != 0 && failed_errno_ == 0) failed_errno_ = errno;
  if (!has_rate_) ::unlink(path_.c_str());
  if (failed_errno_ != 0)
    return errno_error(ExitCode::local_file_error, "write the link's rate to " + path_,
                       "Is the disk full?", failed_errno_);
  return success();
}

}  // namespace onehop::lab
