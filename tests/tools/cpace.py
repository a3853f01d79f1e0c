# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""CPace over ristretto255 once more, of RFC 9496 and draft-irtf-cfrg-cpace-21 and nothing else: no
library of the program has a part in it. Integers in Python tell secrets by their time, so it is for
tests alone."""

import hashlib
import hmac
import secrets

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235
INVSQRT_A_MINUS_D = 54469307008909316920995813868745141605393597292927456921205312896311721017578
NEUTRAL = (0, 1, 1, 0)
Point = tuple[int, int, int, int]


def positive(value: int) -> int:
    value %= P
    return P - value if value & 1 else value


def sqrt_ratio(u: int, v: int) -> tuple[bool, int]:
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    is_flipped = check == -u % P
    if is_flipped or check == -u * SQRT_M1 % P:
        r = r * SQRT_M1 % P
    return check == u % P or is_flipped, positive(r)


def add(a: Point, b: Point) -> Point:
    left, right = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    c, d = 2 * D * a[3] * b[3], 2 * a[2] * b[2]
    e, f, g, h = right - left, d - c, d + c, right + left
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar: int, point: Point) -> Point:
    product = NEUTRAL
    for bit in bin(scalar)[2:]:
        product = add(product, product)
        if bit == "1":
            product = add(product, point)
    return product


def encode(point: Point) -> bytes:
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    inverse = sqrt_ratio(1, u1 * u2 * u2 % P)[1]
    den1, den2 = inverse * u1 % P, inverse * u2 % P
    z_inverse = den1 * den2 * t % P
    if t * z_inverse % P & 1:
        x, y, den2 = y * SQRT_M1 % P, x * SQRT_M1 % P, den1 * INVSQRT_A_MINUS_D % P
    if x * z_inverse % P & 1:
        y = -y
    return positive(den2 * (z - y)).to_bytes(32, "little")


def decode(text: bytes) -> Point:
    s = int.from_bytes(text, "little")
    if s >= P or s & 1:
        raise ValueError("no canonical encoding")
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    is_square, inverse = sqrt_ratio(1, v * u2 * u2 % P)
    x = positive(2 * s * inverse * u2)
    y = u1 * inverse * inverse * u2 * v % P
    if not is_square or x * y % P & 1 or y == 0:
        raise ValueError("no point")
    return x, y, 1, x * y % P


def map_to_point(t: int) -> Point:
    r = SQRT_M1 * t * t % P
    u, v = (r + 1) * (1 - D * D) % P, (-1 - r * D) * (r + D) % P
    is_square, s = sqrt_ratio(u, v)
    c = -1 if is_square else r
    if not is_square:
        s = -positive(s * t) % P
    n = c * (r - 1) * (D - 1)**2 - v
    w0, w1, w2, w3 = 2 * s * v, n * SQRT_AD_MINUS_ONE, 1 - s * s, 1 + s * s
    return w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P


def lv(*strings: bytes) -> bytes:
    joined = b""
    for string in strings:
        length = len(string)
        while length >= 0x80:
            joined += bytes([length & 0x7f | 0x80])
            length >>= 7
        joined += bytes([length]) + string
    return joined


def generator(password: bytes, channel: bytes, session_id: bytes) -> Point:
    domain = b"CPaceRistretto255"
    zeros = bytes(max(0, 128 - len(lv(password)) - len(lv(domain)) - 1))
    both = hashlib.sha512(lv(domain, password, zeros, channel, session_id)).digest()
    halves = [int.from_bytes(both[i:i + 32], "little") % 2**255 for i in (0, 32)]
    return add(*(map_to_point(half) for half in halves))


class End:
    """One end; `initiator` and `responder` below are (point, what it says)."""

    def __init__(self, password, channel, session_id, scalar=None) -> None:
        self.scalar = secrets.randbits(252) if scalar is None else scalar
        self.session_id = session_id
        self.point = encode(multiply(self.scalar, generator(password, channel, session_id)))

    def key(self, other: bytes, initiator: tuple[bytes, bytes],
            responder: tuple[bytes, bytes]) -> bytes:
        shared = encode(multiply(self.scalar, decode(other)))
        if shared == bytes(32):
            raise ValueError("the neutral element")
        return hashlib.sha512(lv(b"CPaceRistretto255_ISK", self.session_id, shared)
                              + lv(*initiator) + lv(*responder)).digest()


def psk_of(key: bytes) -> bytes:
    """RFC 8446's HKDF-Expand-Label with onehop's own label."""
    label = b"tls13 onehop pairing"
    info = (32).to_bytes(2, "big") + bytes([len(label)]) + label + b"\0" + b"\1"
    return hmac.new(key, info, hashlib.sha256).digest()
