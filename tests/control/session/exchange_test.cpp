// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what is said before TLS gives nobody a guess but the one of a connection, and nothing of
//         it can be used again, thrown back or passed on.
// Method: senders that stop where an attacker would (HandSender), receivers of the test, and real
//         sessions on loopback.
#include <openssl/x509.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include <fstream>
#include <set>

#include "tests/control/session/raw_peer.hpp"
#include "tests/support/needs.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

using asio::use_awaitable;

/// attend is a receiver's half of the exchange, up to TLS. `change` may alter its message.
Task<void> attend(tcp::socket& socket, std::string_view code,
                  std::function<void(std::vector<std::byte>&)> change = {}) {
  CodeExchange exchange{Role::receiver, 0};
  ExchangeGreeting greeting;
  co_await asio::async_read(socket, asio::buffer(greeting), use_awaitable);
  CHECK(exchange.take_greeting(greeting));
  co_await asio::async_write(socket, asio::buffer(exchange.greeting()), use_awaitable);
  ExchangeHead head;
  co_await asio::async_read(socket, asio::buffer(head), use_awaitable);
  std::vector<std::byte> said(CodeExchange::said_bytes(head));
  co_await asio::async_read(socket, asio::buffer(said), use_awaitable);
  auto message = exchange.message(code_of(code), {});
  if (change) change(message);
  co_await asio::async_write(socket, asio::buffer(message), use_awaitable);
}

/// Impostor listens where the sender connects, and does `what` with each connection.
struct Impostor {
  tcp::acceptor acceptor;
  std::optional<tcp::socket> socket;
  Impostor(World& world, std::function<Task<void>(tcp::socket&)> what)
      : acceptor{world.io, {asio::ip::address_v4::loopback(), 0}} {
    world.send_options.port = acceptor.local_endpoint().port();
    asio::co_spawn(
        world.io,
        [this, what = std::move(what)]() -> Task<void> {
          for (;;) {
            socket = co_await acceptor.async_accept(use_awaitable);
            co_await what(*socket);
          }
        },
        [](const std::exception_ptr&) {});
  }
};

std::size_t resident_kib() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  return 0;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace

TEST_CASE("K6 both ends of an exchange have one key where the code and all that was said agree",
          "[control][session]") {
  const auto keys = [](std::string_view code_a, std::string_view code_b, std::byte flip) {
    CodeExchange a{Role::sender, 0}, b{Role::receiver, 7};
    CHECK(a.take_greeting(b.greeting()));
    CHECK(b.take_greeting(a.greeting()));
    CHECK(a.peer_burnt() == 7);
    auto from_a = a.message(code_of(code_a), {}), from_b = b.message(code_of(code_b), {});
    from_a.back() ^= flip;
    const auto take = [](CodeExchange& end, const std::vector<std::byte>& message) {
      ExchangeHead head;
      std::copy_n(message.begin(), head.size(), head.begin());
      CHECK(CodeExchange::said_bytes(head) == message.size() - head.size());
      return end.take_message(head, std::span{message}.subspan(head.size()));
    };
    const auto key_a = take(a, from_b), key_b = take(b, from_a);
    return std::ranges::equal(key_a->bytes(), key_b->bytes());
  };
  CHECK(keys(word_code, word_code, std::byte{0}));
  CHECK_FALSE(keys(word_code, other_words, std::byte{0}));
  CHECK_FALSE(keys(word_code, word_code, std::byte{1}));  // what an end says was altered on its way
}

TEST_CASE("K6 what a sender says in one session is of no use in another, and counts as a guess",
          "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen(word_code);
  HandSender first{world, word_code};
  first.exchange_code();
  first.handshake();
  first.socket.close();
  std::set<std::string> psks{{reinterpret_cast<const char*>(first.psk->bytes().data()), 32}};
  for (std::size_t i = 1; i <= 3; ++i) {
    HandSender replay{world, word_code};
    replay.greet();
    REQUIRE(replay.take_greeting());
    replay.write(i == 3 ? first.message : replay.message);  // even all that was said
    REQUIRE(replay.take_message());
    psks.insert({reinterpret_cast<const char*>(replay.psk->bytes().data()), 32});
    const std::size_t before = world.recv_host.rejections.size();
    replay.write(std::as_bytes(std::span{first.hello}));
    REQUIRE(world.run([&] { return world.recv_host.rejections.size() > before; }));
    CHECK(world.recv_host.rejections.back().message().find("same code") != std::string::npos);
  }
  CHECK(psks.size() == 4);  // of one code
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::authentication_failed);
}

TEST_CASE("K6 a sender whose words are thrown back at it proves nothing and sends nothing",
          "[control][session]") {
  World world;
  Impostor mirror{
      world, [](tcp::socket& socket) -> Task<void> {
        std::array<char, 4096> buffer;
        for (;;) {
          const auto bytes = co_await socket.async_read_some(asio::buffer(buffer), use_awaitable);
          co_await asio::async_write(socket, asio::buffer(buffer, bytes), use_awaitable);
        }
      }};
  world.send(word_code);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code != ExitCode::done);
  CHECK(world.send_host.opened == 0);
}

TEST_CASE("K6 a relay with an exchange of its own on both sides fails on both",
          "[control][session]") {
  World world;
  world.listen(word_code);
  const auto receiver_port = world.recv_host.port;
  // Towards the receiver it plays a sender, towards the sender a receiver; it guesses at both.
  HandSender inward{world, other_words};
  inward.exchange_code();
  Impostor outward{world, [&](tcp::socket& socket) -> Task<void> {
                     co_await attend(socket, other_words);
                     std::array<std::byte, 4096> hello;
                     const auto bytes =
                         co_await socket.async_read_some(asio::buffer(hello), use_awaitable);
                     inward.write(std::span{hello}.first(bytes));
                     std::array<std::byte, 4096> answer;
                     const auto said = co_await inward.socket.async_read_some(asio::buffer(answer),
                                                                              use_awaitable);
                     co_await asio::async_write(socket, asio::buffer(answer, said), use_awaitable);
                   }};
  CHECK(world.send_options.port != receiver_port);
  world.send(word_code);
  REQUIRE(world.run(
      [&] { return world.send_end.has_value() && world.recv_host.rejections.size() == 1; }));
  CHECK(world.send_end->code == ExitCode::authentication_failed);
  CHECK(world.send_host.opened == 0);
  CHECK(world.recv_host.rejections[0].code == ExitCode::authentication_failed);
  CHECK(world.recv_host.offer == nullptr);
}

TEST_CASE("K4 a receiver with a certificate instead of the code is refused with 4",
          "[control][session]") {
  // A man in the middle who does not know the code could answer TLS without the PSK, and with a
  // certificate of his own.
  World world;
  asio::ssl::context context{asio::ssl::context::tlsv13_server};
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  X509* certificate = ::X509_new();
  ::X509_gmtime_adj(::X509_getm_notBefore(certificate), 0);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate), 3600);
  ::X509_set_pubkey(certificate, key);
  REQUIRE(::X509_sign(certificate, key, ::EVP_sha256()) > 0);
  REQUIRE(::SSL_CTX_use_certificate(context.native_handle(), certificate) == 1);
  REQUIRE(::SSL_CTX_use_PrivateKey(context.native_handle(), key) == 1);
  ::X509_free(certificate);
  ::EVP_PKEY_free(key);
  Impostor impostor{world, [&](tcp::socket& socket) -> Task<void> {
                      co_await attend(socket, wrong_code);
                      asio::ssl::stream<tcp::socket&> stream{socket, context};
                      co_await stream.async_handshake(asio::ssl::stream_base::server,
                                                      use_awaitable);
                    }};
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::authentication_failed);
  CHECK(world.send_host.opened == 0);
}

TEST_CASE("K6 who plays the receiver and leaves with the sender's proof gets three of them",
          "[control][session]") {
  const bool is_made = GENERATE(false, true);
  World world;
  world.send_options.limits.connect = 2s;  // ten connections
  std::set<std::string> hellos;
  Impostor impostor{world, [&](tcp::socket& socket) -> Task<void> {
                      co_await attend(socket, wrong_code);
                      std::array<char, 4096> hello;
                      const auto bytes =
                          co_await socket.async_read_some(asio::buffer(hello), use_awaitable);
                      hellos.insert({hello.data(), bytes});
                      socket.close();
                    }};
  world.send(is_made ? made_code : word_code);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK((hellos.size() == failed_proofs_max) == !is_made);
  CHECK(world.send_end->code ==
        (is_made ? ExitCode::peer_unreachable : ExitCode::authentication_failed));
  CHECK((world.send_end->error.message().find("may be guessing") == std::string::npos) == is_made);
}

TEST_CASE("K6 a session that goes on with the code of another goes on with its guesses",
          "[control][session]") {
  World world;
  world.send_options.limits.connect = 2s;
  world.send_options.unproven = failed_proofs_max - 1;
  int guesses = 0;
  Impostor impostor{world, [&](tcp::socket& socket) -> Task<void> {
                      co_await attend(socket, wrong_code);
                      std::array<char, 4096> hello;
                      co_await socket.async_read_some(asio::buffer(hello), use_awaitable);
                      ++guesses;
                      socket.close();
                    }};
  world.send(word_code);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(guesses == 1);
  CHECK(world.send_end->code == ExitCode::authentication_failed);
  CHECK(world.sender->unproven() == failed_proofs_max);
}

TEST_CASE("K6 a point that is none ends the connection of whoever sent it, and is no guess",
          "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen(word_code);
  for (const std::byte fill : {std::byte{0}, std::byte{0xff}, std::byte{0x2b}, std::byte{1}}) {
    HandSender sender{world, word_code};
    sender.greet();
    REQUIRE(sender.take_greeting());
    std::fill_n(sender.message.begin(), crypto::cpace_point_bytes, fill);
    sender.write(sender.message);
    CHECK_FALSE(sender.take_message());  // nothing of the code was said
  }
  REQUIRE(world.run([&] { return world.recv_host.rejections.size() == 4; }));
  CHECK_FALSE(world.recv_end.has_value());
  // The other way: a sender that is shown one has not tried its code, either.
  World other;
  Impostor impostor{other, [](tcp::socket& socket) -> Task<void> {
                      co_await attend(socket, word_code, [](std::vector<std::byte>& message) {
                        std::fill_n(message.begin(), crypto::cpace_point_bytes, std::byte{0});
                      });
                    }};
  other.send(word_code);
  REQUIRE(other.run([&] { return other.send_end.has_value(); }));
  CHECK(other.send_end->code == ExitCode::peer_unreachable);
  CHECK(other.send_end->error.message().find("does not speak onehop") != std::string::npos);
  REQUIRE(world.send_to_end(word_code) == ExitCode::done);
}

TEST_CASE("N7 whoever stops within the exchange is dropped in time, and has not guessed",
          "[control][session]") {
  World world;
  world.recv_options.limits.handshake = 300ms;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen(word_code);
  HandSender silent{world, word_code}, greeted{world, word_code}, halved{world, word_code},
      mute{world, word_code};
  greeted.greet();
  for (HandSender* sender : {&halved, &mute}) {
    sender->greet();
    REQUIRE(sender->take_greeting());
  }
  halved.write(std::span{halved.message}.first(40));
  mute.write(mute.message);
  REQUIRE(mute.take_message());  // and no ClientHello
  REQUIRE(world.run([&] { return world.recv_host.rejections.size() == 4; }));
  for (const Error& why : world.recv_host.rejections) CHECK(why.code == ExitCode::timed_out);
  CHECK_FALSE(world.recv_end.has_value());
  REQUIRE(world.send_to_end(word_code) == ExitCode::done);
}

TEST_CASE("K3 K6 words are burnt by the third wrong ones, and recv goes on with new ones",
          "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 1ms;
  world.recv_options.is_code_own = true;  // and is_once
  world.recv_host.next_code = other_words;
  world.listen(word_code);
  const auto try_code = [&](std::string_view code) {
    world.send_end.reset();
    world.send(code);
    REQUIRE(world.run([&] { return world.send_end.has_value(); }));
    return world.send_end->error.message();
  };
  // Open before, and past the exchange: its key is of the code that is burnt next.
  HandSender stale{world, word_code, INADDR_LOOPBACK + 1};
  stale.exchange_code();
  for (int i = 0; i < 3; ++i) CHECK(try_code(wrong_code).find("somebody") == std::string::npos);
  REQUIRE(world.run([&] { return world.recv_host.burnt.size() == 1; }));
  CHECK(world.recv_host.burnt[0].message().find("somebody tried 3 wrong codes") !=
        std::string::npos);
  CHECK_FALSE(world.recv_end.has_value());
  const std::size_t before = world.recv_host.rejections.size();
  stale.handshake();
  REQUIRE(world.run([&] { return world.recv_host.rejections.size() > before; }));
  // The sender that comes with the words of before is told what happened.
  CHECK(try_code(word_code).find("somebody has tried") != std::string::npos);
  CHECK(try_code(word_code).find("burnt its code once") != std::string::npos);
  CHECK(world.recv_host.burnt.size() == 1);  // the stale one was no guess at the new words
  world.send_end.reset();
  REQUIRE(world.send_to_end(other_words) == ExitCode::done);
}

// Bounds: exact for the guesses; 8 MiB for the memory of some thousand connections, where none
// stays: measured 0.3. Its CPU time is printed, and no bound on it holds on every machine.
TEST_CASE("K6 brute force at full speed gets three guesses of each code, and no memory",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.guess_pause = 1ms;
  world.recv_host.next_code = other_words;
  world.listen(word_code);
  const auto deadline = monotonic_now() + 3s;
  std::size_t guesses = 0, begun_kib = 0;
  double begun_seconds = 0;
  std::uint32_t source = INADDR_LOOPBACK;
  while (monotonic_now() < deadline) {
    if (guesses == 20) {
      begun_kib = resident_kib();
      begun_seconds = cpu_seconds();
    }
    HandSender sender{world, wrong_code, ++source};
    sender.exchange_code();
    sender.handshake();
    ++guesses;
    REQUIRE(world.run([&] { return world.recv_host.rejections.size() == guesses; }));
    CHECK(world.recv_host.burnt.size() <= guesses / failed_proofs_max);
    REQUIRE(world.run([&] { return world.recv_host.burnt.size() == guesses / failed_proofs_max; }));
  }
  const std::size_t grown_kib = resident_kib() - std::min(resident_kib(), begun_kib);
  WARN(guesses << " guesses, both ends: "
               << 1e6 * (cpu_seconds() - begun_seconds) / static_cast<double>(guesses - 20)
               << " us of CPU each; memory grew by " << grown_kib << " KiB");
  CHECK(guesses > 30);
  if (onehop::test::is_heap_told()) CHECK(grown_kib < 8 * 1024);
  CHECK(world.recv_host.offer == nullptr);
}
