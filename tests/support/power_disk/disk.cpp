// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/support/power_disk/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/disk/file_bytes.hpp"

namespace onehop::power_disk {

int Disk::open(const Files& files) {
  durable_ = Fd{::open(files.durable.c_str(), O_RDWR | O_CLOEXEC)};
  live_ = Fd{::open(files.live.c_str(), O_RDWR | O_CLOEXEC)};
  log_ = Fd{::open(files.log.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  struct stat status {};
  if (!durable_.is_open() || !live_.is_open() || !log_.is_open() ||
      ::fstat(live_.get(), &status) != 0)
    return errno;
  size_bytes_ = static_cast<std::uint64_t>(status.st_size);
  return 0;
}

int Disk::read(std::span<char> out, std::uint64_t offset) const noexcept {
  return static_cast<int>(disk::read_at(live_.get(), std::as_writable_bytes(out), offset));
}

bool Disk::is_cut_now() noexcept {
  is_cut_ = is_cut_ || ++requests_total_ >= cut_at_;
  return is_cut_;
}

int Disk::write(std::span<const char> bytes, std::uint64_t offset) {
  if (is_cut_now()) return -EIO;
  if (offset > size_bytes_ || bytes.size() > size_bytes_ - offset) return -ENOSPC;
  const Record record{.offset = offset, .bytes = bytes.size()};
  const auto data = std::as_bytes(bytes);
  int errno_value = disk::write_at(log_.get(), std::as_bytes(std::span{&record, 1}), log_bytes_);
  if (errno_value == 0) errno_value = disk::write_at(log_.get(), data, log_bytes_ + sizeof record);
  if (errno_value == 0) errno_value = disk::write_at(live_.get(), data, offset);
  if (errno_value != 0) return -errno_value;
  log_bytes_ += sizeof record + bytes.size();
  unflushed_bytes_ += bytes.size();
  unflushed_.push_back(record);
  return static_cast<int>(bytes.size());
}

/// All of the log is on `live`: the last write of a range is what the flush leaves there.
int Disk::make_durable(const Record& record) noexcept {
  buffer_.resize(record.bytes);
  const std::span bytes{buffer_};
  if (disk::read_at(live_.get(), std::as_writable_bytes(bytes), record.offset) !=
      static_cast<std::int64_t>(record.bytes))
    return EIO;
  return disk::write_at(durable_.get(), std::as_bytes(bytes), record.offset);
}

int Disk::flush() {
  if (is_cut_now()) return -EIO;
  ++flushes_total_;
  for (const Record& record : unflushed_)
    if (const int errno_value = make_durable(record); errno_value != 0) return -errno_value;
  unflushed_.clear();
  log_bytes_ = unflushed_bytes_ = 0;
  return ::ftruncate(log_.get(), 0) == 0 ? 0 : -errno;
}

void Disk::cut_at(std::uint64_t requests) noexcept {
  if (requests == 0) is_cut_ = true;
  cut_at_ = requests_total_ + requests;
}

std::string Disk::report() const {
  return std::string{"cut="} + (is_cut_ ? "1" : "0") +
         " requests=" + std::to_string(requests_total_) +
         " flushes=" + std::to_string(flushes_total_) +
         " unflushed_bytes=" + std::to_string(unflushed_bytes_) + "\n";
}

}  // namespace onehop::power_disk
