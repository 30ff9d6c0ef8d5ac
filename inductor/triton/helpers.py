"""Triton functions that printed kernels call, by name. A kernel's source has the functions that it calls.

Integers: division by zero gives 0, as in numpy, and the lowest integer divided by -1 wraps. Names that end in `_u` take unsigned
integers, names that end in `_f` floats.
"""

from __future__ import annotations

from typing import Final

HEADER: Final = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"

_SOURCES: Final = '''
def fj_truncdiv(a, b):
    special = (b == 0) | (b == -1)
    return tl.where(special, tl.where(b == 0, b, 0 - a), a // tl.where(special, 1, b))

def fj_truncdiv_u(a, b):
    return tl.where(b == 0, b, a // tl.where(b == 0, 1, b))

def fj_fmod(a, b):
    return a % tl.where((b == 0) | (b == -1), 1, b)

def fj_fmod_u(a, b):
    return a % tl.where(b == 0, 1, b)

def fj_floormod(a, b):
    m = fj_fmod(a, b)
    return tl.where((m != 0) & ((m < 0) != (b < 0)), m + b, m)

def fj_floordiv(a, b):
    q = fj_truncdiv(a, b)
    return tl.where((fj_fmod(a, b) != 0) & ((a < 0) != (b < 0)), q - 1, q)

def fj_left_shift(a, b):
    inside = (b >= 0) & (b < a.dtype.primitive_bitwidth)
    return tl.where(inside, a << tl.where(inside, b, 0), 0)

def fj_left_shift_u(a, b):
    inside = b < a.dtype.primitive_bitwidth
    return tl.where(inside, a << tl.where(inside, b, 0), 0)

def fj_right_shift(a, b):
    inside = (b >= 0) & (b < a.dtype.primitive_bitwidth)
    return tl.where(inside, a >> tl.where(inside, b, 0), tl.where(a < 0, -1, 0).to(a.dtype))

def fj_right_shift_u(a, b):
    inside = b < a.dtype.primitive_bitwidth
    return tl.where(inside, a >> tl.where(inside, b, 0), 0)

def fj_power(a, b):  # by squaring; the result wraps
    base, n = tl.broadcast(a, b)
    r = base * 0 + 1
    for _ in range(64):
        r = tl.where((n & 1) != 0, r * base, r)
        base = base * base
        n = n >> 1
    return r

def fj_pow(a, b):
    odd = tl.where((b & 1) != 0, -1, 1).to(a.dtype)
    below = tl.where(a == 1, 1, tl.where(a == -1, odd, 0)).to(a.dtype)
    return tl.where(b < 0, below, fj_power(a, tl.where(b < 0, 0, b)))

def fj_pow_f(a, b):  # pow(-0, 0.5) is 0 and pow(-inf, 0.5) is inf in libdevice too
    return libdevice.pow(a, b)

def fj_sign_f(x):
    return tl.where(x != x, x, (x > 0).to(x.dtype) - (x < 0).to(x.dtype))

def fj_sign(x):
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)

def fj_maximum_f(a, b):
    return tl.where((a > b) | (a != a), a, b)

def fj_minimum_f(a, b):
    return tl.where((a < b) | (a != a), a, b)

def fj_remainder_f(a, b):  # a - floor(a / b) * b would round the quotient first
    m = libdevice.fmod(a, b)
    return tl.where((m != 0) & ((m < 0) != (b < 0)), m + b, m)

def fj_floordiv_f(a, b):
    m = libdevice.fmod(a, b)
    return fj_floored(a / b, (a - m) / b, m, b)

def fj_floordiv_f32(a, b):  # two units of rounding in `/` are whole numbers in a large quotient
    m = libdevice.fmod(a, b)
    return fj_floored(tl.div_rn(a, b), tl.div_rn(a - m, b), m, b)

def fj_floored(ratio, whole, m, b):  # ratio: a / b; whole: (a - m) / b, where m is the remainder
    q = tl.where(m == 0, ratio, whole)
    q = tl.where((m != 0) & ((b < 0) != (m < 0)), q - 1, q)
    f = tl.floor(q)
    f = tl.where(q - f > 0.5, f + 1, f)
    f = tl.where(q == 0, libdevice.copysign(q * 0, ratio), f)
    return tl.where(b == 0, ratio, f)

def fj_to_i32(x):  # the lowest number for a value outside of the range
    inside = (x > -2147483649.0) & (x < 2147483648.0)
    return tl.where(inside, tl.where(inside, x, 0.0).to(tl.int32), -2147483648)

def fj_to_i64(x):
    inside = (x >= -9223372036854775808.0) & (x < 9223372036854775808.0)
    return tl.where(inside, tl.where(inside, x, 0.0).to(tl.int64), -9223372036854775808)

def fj_to_u64(x):
    high = x >= 9223372036854775808.0
    low = fj_to_i64(tl.where(high, x - 9223372036854775808.0, x))
    return (low ^ tl.where(high, -9223372036854775808, 0)).to(tl.uint64)

def fj_tanh(x):
    """float32 without branches: an odd polynomial below 1, where 1 - 2 / (exp(2 |x|) + 1) cancels."""
    a = tl.abs(x)
    z = x * x
    p = (-0.00035845183 * z + 0.002301364) * z - 0.007946106
    p = (((p * z + 0.021486657) * z - 0.0538798) * z + 0.13332345) * z - 0.33333296
    far = libdevice.copysign(1.0 - 2.0 / (tl.exp(a + a) + 1.0), x)
    return tl.where(a < 1.0, p * (z * x) + x, far)

def fj_erf(x):
    """float32 without branches: x P(x^2) near zero, 1 - exp(P(|x|)) farther out (coefficients: N. Juffa, 2015)."""
    t = tl.abs(x)
    s = x * x
    r = (-1.72853470e-5 * t + 3.83197126e-4) * s + (-3.88396438e-3 * t + 2.42546219e-2)
    r = (((r * t - 1.06777877e-1) * t - 6.34846687e-1) * t - 1.28717512e-1) * t - t
    p = ((-5.96761703e-4 * s + 4.99119423e-3) * s - 2.67681349e-2) * s + 1.12819925e-1
    p = (p * s - 3.76125336e-1) * s + 1.28379166e-1
    return tl.where(t > 0.921875, libdevice.copysign(1.0 - tl.exp(r), x), p * x + x)

def fj_digamma(x):
    """Recurrence up to 8, then the asymptotic series (A&S 6.3.18); reflection below 0, by the distance to the nearest pole."""
    z = x.to(tl.float64)
    w = tl.where(z < 0.0, 1.0 - z, z)
    s = w * 0.0
    for _ in tl.static_range(8):
        s = s - tl.where(w < 8.0, 1.0 / w, 0.0)
        w = tl.where(w < 8.0, w + 1.0, w)
    r = 1.0 / (w * w)
    t = 5.0 / 660 - r * (691.0 / 32760 - r / 12)
    t = r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * t))))
    s = s + libdevice.log(w) - 0.5 / w - t
    f = z - libdevice.rint(z)
    s = tl.where(z < 0.0, s - 3.141592653589793 / libdevice.tan(3.141592653589793 * f), s)
    pole = tl.where(z == 0.0, libdevice.copysign(tl.where(z == 0.0, float("inf"), z), z * -1.0), float("nan"))
    return tl.where((f == 0.0) & (z <= 0.0), pole, s).to(x.dtype)

def fj_philox(key_low, key_high, offset, i, word, words):
    """Word `word` of the `words` words of element i of a draw of Philox4x32-10. See eager.optable.random for the place of an element."""
    rows = 4 // words
    counter = offset.to(tl.int64) + (i // (16 * rows) * 16 + i % 16)
    k = key_low.to(tl.uint64) | (key_high.to(tl.uint64) << 32)
    zero = tl.full([], 0, tl.uint32)
    a, b, c, d = tl.philox(k, counter.to(tl.uint32), (counter >> 32).to(tl.uint32), zero, zero)
    lane = i // 16 % rows * words + word
    return tl.where(lane == 0, a, tl.where(lane == 1, b, tl.where(lane == 2, c, d)))

def fj_wrapped(position, size):
    return tl.where(position < 0, position + size, position)

def fj_check(checks, slot, position, inside):
    """Records a position that is outside of its range in an active element: 1, then the position."""
    at = checks + slot + tl.where(inside, 0, 0)
    tl.store(at, tl.where(inside, 0, 1).to(tl.int64), inside == 0)
    tl.store(at + 1, position + tl.where(inside, 0, 0), inside == 0)
'''

# A blank line ends a function.
_FUNCTIONS: Final = {source[len("def fj_") : source.index("(")]: source for source in _SOURCES.strip().split("\n\n")}
_CALLS: Final = {  # functions that others call
    "floormod": ("fmod",), "floordiv": ("truncdiv", "fmod"), "pow": ("power",), "to_u64": ("to_i64",),
    "floordiv_f": ("floored",), "floordiv_f32": ("floored",),
}  # fmt: skip


class Helpers(dict[str, str]):
    """The functions that a kernel calls so far: `helpers["fmod"]` is the name under which source calls `fmod`."""

    def __missing__(self, name: str) -> str:
        for inner in _CALLS.get(name, ()):
            self[inner]
        return self.setdefault(name, f"fj_{name}")

    def sources(self) -> str:
        """The functions, and the functions that they call, in an order that can run."""
        return "".join(f"\n\n@triton.jit\n{source}\n" for name, source in _FUNCTIONS.items() if name in self)
