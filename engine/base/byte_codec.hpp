// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ByteWriter and ByteReader: bounded coding of integers and bytes on a span, big endian. For bodies
// of frames, for messages of the control connection and for files that we write ourselves.
//
// They own nothing and belong to the thread that made them. A write that does not fit or a read
// past the end sets a sticky failure: every later call does nothing (reads give 0), so a codec
// tests is_ok() once, at its end. They never allocate and never throw.
#pragma once

#include <bit>
#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace onehop {

/// load_be and store_be are one move and one bswap; the caller has checked the bounds.
template <class T>
[[nodiscard]] inline T load_be(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return boost::endian::big_to_native(value);
}
template <class T>
inline void store_be(std::byte* to, T value) noexcept {
  value = boost::endian::native_to_big(value);
  std::memcpy(to, &value, sizeof value);
}

/// A varint is LEB128 in its shortest form: 7 bits a byte, low bits first, at most ten bytes.
inline constexpr std::size_t varint_bytes_max = 10;
[[nodiscard]] constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> out) noexcept : out_{out} {}

  [[nodiscard]] bool is_ok() const noexcept { return is_ok_; }
  [[nodiscard]] std::size_t size() const noexcept { return at_; }
  [[nodiscard]] std::size_t remaining() const noexcept { return is_ok_ ? out_.size() - at_ : 0; }
  [[nodiscard]] std::span<std::byte> written() const noexcept { return out_.first(at_); }

  bool u8(std::uint8_t value) noexcept { return put(value); }
  bool u16(std::uint16_t value) noexcept { return put(value); }
  bool u32(std::uint32_t value) noexcept { return put(value); }
  bool u64(std::uint64_t value) noexcept { return put(value); }

  bool varint(std::uint64_t value) noexcept {
    if (!take(varint_bytes(value))) return false;
    for (; value >= 0x80; value >>= 7) out_[at_++] = static_cast<std::byte>(value | 0x80);
    out_[at_++] = static_cast<std::byte>(value);
    return true;
  }
  bool bytes(std::span<const std::byte> data) noexcept {
    if (!take(data.size())) return false;
    if (!data.empty()) std::memcpy(out_.data() + at_, data.data(), data.size());
    at_ += data.size();
    return true;
  }

 private:
  [[nodiscard]] bool take(std::size_t count) noexcept {
    is_ok_ = is_ok_ && count <= out_.size() - at_;
    return is_ok_;
  }
  template <class T>
  bool put(T value) noexcept {
    if (!take(sizeof(T))) return false;
    store_be(out_.data() + at_, value);
    at_ += sizeof(T);
    return true;
  }

  std::span<std::byte> out_;
  std::size_t at_ = 0;
  bool is_ok_ = true;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> in) noexcept : in_{in} {}

  [[nodiscard]] bool is_ok() const noexcept { return is_ok_; }
  /// is_done: nothing failed and nothing is left. Decoders end with this: no trailing bytes.
  [[nodiscard]] bool is_done() const noexcept { return is_ok_ && at_ == in_.size(); }
  [[nodiscard]] std::size_t remaining() const noexcept { return is_ok_ ? in_.size() - at_ : 0; }
  /// fail marks the input as bad, for a value that the caller found out of its bounds.
  void fail() noexcept { is_ok_ = false; }

  [[nodiscard]] std::uint8_t u8() noexcept { return get<std::uint8_t>(); }
  [[nodiscard]] std::uint16_t u16() noexcept { return get<std::uint16_t>(); }
  [[nodiscard]] std::uint32_t u32() noexcept { return get<std::uint32_t>(); }
  [[nodiscard]] std::uint64_t u64() noexcept { return get<std::uint64_t>(); }
  /// u64_max reads a number that may be at most `max`.
  [[nodiscard]] std::uint64_t u64_max(std::uint64_t max) noexcept {
    const std::uint64_t value = u64();
    if (value > max) fail();
    return is_ok_ ? value : 0;
  }

  /// varint rejects more than 64 bits and any form but the shortest: one value has one encoding.
  [[nodiscard]] std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < varint_bytes_max; ++i) {
      const std::uint8_t byte = u8();
      if (!is_ok_) return 0;
      if (i + 1 == varint_bytes_max && byte > 1) break;  // bits above the 64th
      value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
      if ((byte & 0x80) != 0) continue;
      if (byte == 0 && i > 0) break;  // not the shortest form
      return value;
    }
    fail();
    return 0;
  }
  /// bytes gives a view into the input; empty on failure.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t count) noexcept {
    if (!take(count)) return {};
    const auto view = in_.subspan(at_, count);
    at_ += count;
    return view;
  }

 private:
  [[nodiscard]] bool take(std::size_t count) noexcept {
    is_ok_ = is_ok_ && count <= in_.size() - at_;
    return is_ok_;
  }
  template <class T>
  [[nodiscard]] T get() noexcept {
    if (!take(sizeof(T))) return 0;
    const T value = load_be<T>(in_.data() + at_);
    at_ += sizeof(T);
    return value;
  }

  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  bool is_ok_ = true;
};

}  // namespace onehop
