// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   CPace is the draft's, byte by byte, and takes no point that is none.
// Method: the vectors of draft-irtf-cfrg-cpace-21 for CPACE-RISTR255-SHA512, then two ends.
// Bounds: exact.
#include "engine/crypto/cpace.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/engine/crypto/hex.hpp"

using namespace onehop;
using namespace onehop::crypto;
using namespace onehop::test;

namespace {

CpaceScalar scalar_of(std::string_view hex) {
  CpaceScalar scalar;
  std::ranges::copy(from_hex(hex), scalar.writable().begin());
  return scalar;
}

/// What a vector or an end knows; it keeps the bytes that a CpaceInput names.
struct Known {
  std::vector<std::byte> password = from_hex("50617373776f7264");
  std::vector<std::byte> channel = from_hex("0b415f696e69746961746f720b425f726573706f6e646572");
  std::vector<std::byte> session_id = from_hex("7e4b4791d6a8ef019b936c79fb7f2c57");
  [[nodiscard]] CpaceInput input() const { return {password, channel, session_id}; }
};

/// Two ends after their messages: what each has for a key, if anything.
struct Keys {
  std::optional<CpaceKey> initiator, responder;
  [[nodiscard]] bool are_equal() const {
    return initiator && responder && std::ranges::equal(initiator->bytes(), responder->bytes());
  }
};
Keys keys_of(const Known& initiator, const Known& responder,
             const std::vector<std::byte>& said_a = {},
             const std::vector<std::byte>& heard_a = {}) {
  const auto a = Cpace::begin(initiator.input()), b = Cpace::begin(responder.input());
  return {a.key_of_initiator(said_a, {b.point(), {}}),
          b.key_of_responder({}, {a.point(), heard_a})};
}

}  // namespace

TEST_CASE("K6 the draft's vectors: generator, points, shared secret and key", "[crypto]") {
  const Known known;
  const auto said_a = from_hex("414461"), said_b = from_hex("414462");
  const auto ya = scalar_of("da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08");
  const auto yb = scalar_of("d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d");
  CHECK(to_hex(cpace_generator(known.input())) ==
        "222b6b195fe84b1652badb6f6a3ae3d24341e7306967f0b8115b40d5698c7e56");
  const Cpace a = Cpace::with_scalar(known.input(), ya), b = Cpace::with_scalar(known.input(), yb);
  CHECK(to_hex(a.point()) == "d6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157");
  CHECK(to_hex(b.point()) == "3ea7e0b19560d7c0b0f5734f63b955286dfa8232b5ebe63324e2d9e7433f7258");
  CpacePoint shared;
  REQUIRE(cpace_multiply(ya, b.point(), shared));
  CHECK(to_hex(shared) == "80b69a8a76457ab6a4d7f887a4bf6b55a2f80ac19c333f917a05fc9887c8b40f");
  const std::string key =
      "b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dcae7b35cd"
      "2b38950a39dfd5d4a79164614c2984f7daa460b588c1e80c3fa2068af7900447";
  CHECK(to_hex(a.key_of_initiator(said_a, {b.point(), said_b})->bytes()) == key);
  CHECK(to_hex(b.key_of_responder(said_b, {a.point(), said_a})->bytes()) == key);
}

TEST_CASE("K6 the draft's points: one product, and what is refused", "[crypto]") {
  const auto scalar = scalar_of("7cd0e075fa7955ba52c02759a6c90dbbfc10e6d40aea8d283e407d88cf538a05");
  CpacePoint product;
  const auto point = array_from_hex<cpace_point_bytes>(
      "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c");
  CHECK(is_cpace_point(point));
  REQUIRE(cpace_multiply(scalar, point, product));
  CHECK(to_hex(product) == "7c13645fe790a468f62c39beb7388e541d8405d1ade69d1778c5fe3e7f6b600e");
  const Known known;
  const auto end = Cpace::begin(known.input());
  // The draft's two, an encoding above the field's prime, the points of order two and four of the
  // curve below, and bytes that nobody meant.
  for (const char* hex : {"2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c",
                          "0000000000000000000000000000000000000000000000000000000000000000",
                          "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                          "0100000000000000000000000000000000000000000000000000000000000000",
                          "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                          "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}) {
    CAPTURE(hex);
    const auto wrong = array_from_hex<cpace_point_bytes>(hex);
    CHECK_FALSE(is_cpace_point(wrong));
    CHECK_FALSE(cpace_multiply(scalar, wrong, product));
    CHECK_FALSE(end.key_of_initiator({}, {wrong, {}}));
    CHECK_FALSE(end.key_of_responder({}, {wrong, {}}));
  }
}

TEST_CASE("K6 two ends have one key where all that they know and said is the same", "[crypto]") {
  const Known known;
  CHECK(keys_of(known, known).are_equal());
  for (auto Known::*member : {&Known::password, &Known::channel, &Known::session_id}) {
    Known other = known;
    (other.*member).back() ^= std::byte{1};
    CHECK_FALSE(keys_of(known, other).are_equal());
  }
  CHECK_FALSE(keys_of(known, known, from_hex("01"), from_hex("02")).are_equal());
  Known cut = known;  // a byte that moved from one string to the next
  cut.channel.pop_back();
  cut.session_id.insert(cut.session_id.begin(), known.channel.back());
  CHECK_FALSE(keys_of(known, cut).are_equal());
}

TEST_CASE("K6 a message that is thrown back gives no key that somebody else has", "[crypto]") {
  const Known known;
  const auto a = Cpace::begin(known.input()), b = Cpace::begin(known.input());
  const auto reflected = a.key_of_initiator({}, {a.point(), {}});
  REQUIRE(reflected);
  const auto of_a = a.key_of_initiator({}, {b.point(), {}});
  const auto of_b = b.key_of_responder({}, {a.point(), {}});
  CHECK(std::ranges::equal(of_a->bytes(), of_b->bytes()));
  CHECK_FALSE(std::ranges::equal(reflected->bytes(), of_a->bytes()));
}

// Long passwords leave no room for the zero bytes, and lengths take two bytes.
TEST_CASE("K6 passwords of any length agree, and one byte more is another", "[crypto]") {
  for (const std::size_t bytes : {0U, 1U, 107U, 108U, 109U, 127U, 128U, 129U, 256U}) {
    CAPTURE(bytes);
    Known known;
    known.password.assign(bytes, std::byte{'a'});
    CHECK(keys_of(known, known).are_equal());
    Known longer = known;
    longer.password.push_back(std::byte{'a'});
    CHECK_FALSE(keys_of(known, longer).are_equal());
  }
}

TEST_CASE("K6 two runs with one password show points that have nothing in common", "[crypto]") {
  const Known known;
  CHECK(Cpace::begin(known.input()).point() != Cpace::begin(known.input()).point());
}
