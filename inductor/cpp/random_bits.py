"""Random bits in generated code: Philox4x32-10, one counter in each lane of a vector.

Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. The bits equal the bits of `eager.optable.random.philox`.

A product of 32 by 32 bits has 64, which the compiler's vectoriser multiplies in full. The vector forms here hold even and odd lanes
apart, in words of 64 bits whose upper halves are never read, so that a round is two products, two shifts and two exclusive ors.
Owns the declarations of `fj_philox_<word>` and the definitions of the words that a unit uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

WORDS: Final = 4

_ROUNDS: Final = """\
  for (int i = 0; i < 10; i++) {
    PRODUCTS
    c0 = HIGH(p1) ^ c1 ^ k0; c2 = HIGH(p0) ^ c3 ^ k1; c1 = (V)p1; c3 = (V)p0; k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;
"""

_ONE: Final = "FI u32 fj_philox_one(u32 c0, u32 c1, u32 k0, u32 k1, int word) {\n  typedef u32 V;\n  u32 c2 = 0, c3 = 0;\n" + (
    _ROUNDS.replace("PRODUCTS", "const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;")
    .replace("HIGH(p0)", "(u32)(p0 >> 32)").replace("HIGH(p1)", "(u32)(p1 >> 32)")
) + "}\n"  # fmt: skip

_HALF: Final = "FI QUADS fj_philox_half(QUADS c0, QUADS c1, u32 k0, u32 k1, int word) {\n  typedef QUADS V;\n" + (
    "  const V m0 = (V){} + 0xD2511F53u, m1 = (V){} + 0xCD9E8D57u;\n  V c2 = {}, c3 = {};\n#pragma GCC unroll 10\n"
    + _ROUNDS.replace("PRODUCTS", "const V p0 = (V)PRODUCT(c0, m0), p1 = (V)PRODUCT(c2, m1);")
    .replace("HIGH(p0)", "(p0 >> 32)").replace("HIGH(p1)", "(p1 >> 32)")
) + """\
}
FI LANES fj_philox_lanes(LANES low, LANES high, u32 k0, u32 k1, int word) {
  const QUADS even = fj_philox_half((QUADS)low, (QUADS)high, k0, k1, word);
  const QUADS odd = fj_philox_half((QUADS)low >> 32, (QUADS)high >> 32, k0, k1, word);
  return (LANES)((even & 0xffffffffu) | odd << 32);
}
"""  # fmt: skip

# By number of lanes: the macro of a machine that has the form, the product of the even lanes, and letters of the vector ABI.
_FORMS: Final = {
    4: ("__SSE2__", "__builtin_ia32_pmuludq128((INTS)({a}), (INTS)({b}))", "bc"),
    8: ("__AVX2__", "__builtin_ia32_pmuludq256((INTS)({a}), (INTS)({b}))", "d"),
    16: ("__AVX512F__", "__builtin_ia32_pmuludq512_mask((INTS)({a}), (INTS)({b}), (LONGS){{}}, (u8)-1)", "e"),
}
_PARAMETERS: Final = "({t} low, {t} high, u32 k0, u32 k1)"


def _declaration(word: int) -> str:
    function = f"u32 fjv_philox_{word}{_PARAMETERS.format(t='u32')} noexcept;"
    return f'#pragma omp declare simd uniform(k0, k1) notinbranch\nextern "C" __attribute__((const)) {function}\n'


def _wrapper(word: int, function: str, *last: str) -> str:
    arguments = ", ".join(("low", "high", "(u32)seed", "(u32)((u64)seed >> 32)", *last))
    return f"FI u32 fj_philox_{word}(i64 seed, u32 low, u32 high) {{ return {function}({arguments}); }}\n"


# fj_philox_<word>: one word of the block whose 64-bit counter is (high, low).
DECLARATIONS: Final = (
    _ONE
    + "#if defined(__SSE2__)\n" + "".join(_declaration(w) + _wrapper(w, f"fjv_philox_{w}") for w in range(WORDS))
    + "#else\n" + "".join(_wrapper(w, "fj_philox_one", str(w)) for w in range(WORDS)) + "#endif\n"
)  # fmt: skip


def definitions(words: Iterable[int]) -> str:
    """The scalar and vector forms of `fj_philox_<word>`, which a unit needs after its own text."""
    chosen = sorted(words)
    if not chosen:
        return ""
    head = "#if defined(__SSE2__)\n#define FJ_BITS extern \"C\" __attribute__((weak, visibility(\"hidden\")))\n"
    ones = "".join(_form("u32", f"fj_1_philox_{w}", f"fjv_philox_{w}", f"fj_philox_one(low, high, k0, k1, {w})") for w in chosen)
    return head + ones + "".join(_lanes(n, chosen) for n in _FORMS) + "#endif\n"


def _lanes(n: int, words: Iterable[int]) -> str:
    """The forms for vectors of `n` lanes."""
    macro, multiply, letters = _FORMS[n]
    types = {"LANES": f"u32x{n}", "INTS": f"i32x{n}", "QUADS": f"u64x{n // 2}", "LONGS": f"i64x{n // 2}"}
    text = "".join(
        f"typedef {name.partition('x')[0]} {name} __attribute__((vector_size({4 * n})));\n" for name in types.values()
    )
    body = _HALF
    for product, operands in (("PRODUCT(c0, m0)", "c0 m0"), ("PRODUCT(c2, m1)", "c2 m1")):
        a, b = operands.split()
        body = body.replace(product, multiply.format(a=a, b=b))
    for name, of in types.items():
        body = body.replace(name, of)
    forms = "".join(
        _form(f"u32x{n}", f"fj_{letter}_philox_{w}", f"_ZGV{letter}N{n}vvuu_fjv_philox_{w}", f"fj_philox_lanes(low, high, k0, k1, {w})")
        for w in words for letter in letters
    )  # fmt: skip
    return f"#if defined({macro})\n{text}{body}{forms}#endif\n"


def _form(t: str, name: str, symbol: str, value: str) -> str:
    parameters = _PARAMETERS.format(t=t)
    return f'FJ_BITS {t} {name}{parameters} asm("{symbol}");\nFJ_BITS {t} {name}{parameters} {{ return {value}; }}\n'
