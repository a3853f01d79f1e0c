// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/bus/bus_message.hpp"

namespace onehop::bus {

namespace {

template <class T>
constexpr const char* type_of() {
  if constexpr (std::is_same_v<T, bool>) return "b";
  if constexpr (std::is_same_v<T, std::int64_t>) return "i";
  if constexpr (std::is_same_v<T, std::string>) return "s";
  if constexpr (std::is_same_v<T, ObjectPath>) return "o";
  if constexpr (std::is_same_v<T, ByteArray>) return "ay";
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return "as";
  if constexpr (std::is_same_v<T, std::vector<ByteArray>>) return "aay";
  if constexpr (std::is_same_v<T, Dict>) return "a{sv}";
}

std::string type_text(const Number& number) { return {number.type}; }
template <class T>
std::string type_text(const T&) {
  return type_of<T>();
}

int put(sd_bus_message* message, bool value) {
  return sd_bus_message_append(message, "b", int{value});
}
int put(sd_bus_message* message, std::int64_t value) {
  return sd_bus_message_append(message, "i", static_cast<std::int32_t>(value));
}
int put(sd_bus_message* message, const Number& number) {
  const auto value = static_cast<std::uint32_t>(number.value);
  const auto value16 = static_cast<std::uint16_t>(number.value);
  const auto value8 = static_cast<std::uint8_t>(number.value);
  const void* const written = number.type == 'y'   ? static_cast<const void*>(&value8)
                              : number.type == 'q' ? static_cast<const void*>(&value16)
                                                   : &value;
  return sd_bus_message_append_basic(message, number.type, written);
}
int put(sd_bus_message* message, const std::string& value) {
  return sd_bus_message_append(message, "s", value.c_str());
}
int put(sd_bus_message* message, const ObjectPath& value) {
  return sd_bus_message_append(message, "o", value.text.c_str());
}
int put(sd_bus_message* message, const ByteArray& value) {
  return sd_bus_message_append_array(message, 'y', value.data(), value.size());
}
template <class T>
int put(sd_bus_message* message, const std::vector<T>& values) {
  int code = sd_bus_message_open_container(message, 'a', type_of<T>());
  for (const T& value : values)
    if (code >= 0) code = put(message, value);
  return code < 0 ? code : sd_bus_message_close_container(message);
}
int put(sd_bus_message* message, const Dict& dict) {
  int code = sd_bus_message_open_container(message, 'a', "{sv}");
  for (const auto& [key, value] : dict) {
    if (code >= 0) code = sd_bus_message_open_container(message, 'e', "sv");
    if (code >= 0) code = put(message, key);
    if (code >= 0) code = append_variant(message, value);
    if (code >= 0) code = sd_bus_message_close_container(message);
  }
  return code < 0 ? code : sd_bus_message_close_container(message);
}

template <class T>
int read_number(sd_bus_message* message, char type, Value& value) {
  T number{};
  const int code = sd_bus_message_read_basic(message, type, &number);
  value = static_cast<std::int64_t>(number);
  return code;
}

int read_text(sd_bus_message* message, char type, std::string& text) {
  const char* read = "";
  const int code = sd_bus_message_read_basic(message, type, &read);
  text = read;
  return code;
}

int read_bytes(sd_bus_message* message, ByteArray& bytes) {
  const void* data = nullptr;
  std::size_t count = 0;
  const int code = sd_bus_message_read_array(message, 'y', &data, &count);
  const auto* first = static_cast<const std::uint8_t*>(data);
  bytes.assign(first, first + (code <= 0 ? 0 : count));
  return code;
}

/// read_many: `read` reads one, and returns 0 where there is none left.
template <class T, class Read>
int read_many(sd_bus_message* message, const std::string& contents, Value& value, Read read) {
  auto& all = value.emplace<std::vector<T>>();
  int code = sd_bus_message_enter_container(message, 'a', contents.c_str());
  for (T one; code > 0 && (code = read(one)) > 0;) all.push_back(one);
  return code < 0 ? code : sd_bus_message_exit_container(message);
}

int read_dict(sd_bus_message* message, Dict& dict) {
  int code = sd_bus_message_enter_container(message, 'a', "{sv}");
  while (code >= 0 && (code = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
    std::string key;
    Value value;
    code = read_text(message, 's', key);
    if (code < 0) return code;
    const int read = read_variant(message, value);
    if (read < 0) return read;
    if (read > 0) dict.insert_or_assign(key, std::move(value));
    code = sd_bus_message_exit_container(message);
  }
  return code < 0 ? code : sd_bus_message_exit_container(message);
}

int read_array(sd_bus_message* message, const std::string& contents, Value& value) {
  if (contents == "{sv}") return read_dict(message, value.emplace<Dict>());
  if (contents == "y") return read_bytes(message, value.emplace<ByteArray>());
  if (contents == "ay")
    return read_many<ByteArray>(message, contents, value,
                                [&](ByteArray& one) { return read_bytes(message, one); });
  if (contents != "s" && contents != "o") return 0;
  return read_many<std::string>(message, contents, value, [&](std::string& one) {
    return read_text(message, contents[0], one);
  });
}

}  // namespace

int append(sd_bus_message* message, const Value& value) {
  return std::visit([message](const auto& held) { return put(message, held); }, value);
}

int append_variant(sd_bus_message* message, const Value& value) {
  const std::string type = std::visit([](const auto& held) { return type_text(held); }, value);
  int code = sd_bus_message_open_container(message, 'v', type.c_str());
  if (code >= 0) code = append(message, value);
  return code < 0 ? code : sd_bus_message_close_container(message);
}

int read_value(sd_bus_message* message, Value& value) {
  char type = 0;
  const char* contents = nullptr;
  if (const int code = sd_bus_message_peek_type(message, &type, &contents); code <= 0) return code;
  switch (type) {
    case 'b': {
      int flag = 0;
      const int code = sd_bus_message_read_basic(message, 'b', &flag);
      value = flag != 0;
      return code;
    }
    case 'y': return read_number<std::uint8_t>(message, type, value);
    case 'n': return read_number<std::int16_t>(message, type, value);
    case 'q': return read_number<std::uint16_t>(message, type, value);
    case 'i': return read_number<std::int32_t>(message, type, value);
    case 'u': return read_number<std::uint32_t>(message, type, value);
    case 'x': return read_number<std::int64_t>(message, type, value);
    case 's':
    case 'o': return read_text(message, type, value.emplace<std::string>());
    case 'a': return read_array(message, contents == nullptr ? "" : contents, value);
    default: return 0;
  }
}

int read_variant(sd_bus_message* message, Value& value) {
  char type = 0;
  const char* contents = nullptr;
  int code = sd_bus_message_peek_type(message, &type, &contents);
  if (code <= 0 || type != 'v') return code < 0 ? code : -EBADMSG;
  const std::string inner = contents == nullptr ? "" : contents;
  code = sd_bus_message_enter_container(message, 'v', inner.c_str());
  if (code < 0) return code;
  const int read = read_value(message, value);
  if (read == 0) code = sd_bus_message_skip(message, inner.c_str());
  if (read < 0 || code < 0) return read < 0 ? read : code;
  code = sd_bus_message_exit_container(message);
  return code < 0 ? code : read;
}

}  // namespace onehop::bus
