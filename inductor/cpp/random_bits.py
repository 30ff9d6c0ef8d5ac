"""Random bits in generated code: Philox4x32-10, the element of a draw in each lane of a vector.

Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. The bits equal the bits of `eager.optable.random`, which
states where each element of a draw has its words.

A product of 32 by 32 bits has 64, which the compiler's vectoriser multiplies in full. The vector forms here hold even and odd lanes
apart, in words of 64 bits whose upper halves are never read, so that a round is two products, two shifts and two exclusive ors.
Owns the declarations of `fj_philox_<words>_<word>` and the definitions of the forms that a unit uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

WORDS: Final = ("1_0", "2_0", "2_1")  # <words of an element>_<word>

# V holds counters; `product` multiplies them by a constant of 32 bits. The lower half of each element is the word. Even and odd lanes
# take turns in a round: a chain of products alone would leave multipliers idle.
_ROUNDS: Final = """\
template <class V> struct fj_block { V even[4], odd[4]; };
template <class V, class P> FI fj_block<V> fj_philox_rounds(V even, V odd, u32 k0, u32 k1, P product) {
  V c0 = even, c1 = even >> 32, c2 = {}, c3 = {}, d0 = odd, d1 = odd >> 32, d2 = {}, d3 = {};
#pragma GCC unroll 10
  for (int i = 0; i < 10; i++) {
    const V p0 = product(c0, 0xD2511F53u), q0 = product(d0, 0xD2511F53u), p1 = product(c2, 0xCD9E8D57u), q1 = product(d2, 0xCD9E8D57u);
    c0 = (p1 >> 32) ^ c1 ^ k0; d0 = (q1 >> 32) ^ d1 ^ k0; c2 = (p0 >> 32) ^ c3 ^ k1; d2 = (q0 >> 32) ^ d3 ^ k1;
    c1 = p1; d1 = q1; c3 = p0; d3 = q0; k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}, {d0, d1, d2, d3}};
}
template <int words, class V> FI V fj_philox_counter(V i, i64 offset) { return (i >> (words == 1 ? 6 : 5) << 4 | (i & 15)) + (u64)offset; }
template <int words, class V> FI V fj_philox_word(const V (&of)[4], V i, int word) {
  if constexpr (words == 2) return (i & 16) != 0 ? of[2 + word] : of[word];
  else return (i & 32) != 0 ? ((i & 16) != 0 ? of[3] : of[2]) : (i & 16) != 0 ? of[1] : of[0];
}
FI u64 fj_philox_product(u64 c, u32 m) { return (c & 0xffffffffu) * m; }
template <int words> FI u32 fj_philox_one(u32 low, u32 high, i64 offset, u32 k0, u32 k1, int word) {
  const auto product = [](u64 c, u32 m) __attribute__((always_inline)) { return fj_philox_product(c, m); };
  const u64 i = (u64)high << 32 | low;
  return (u32)fj_philox_word<words>(fj_philox_rounds(fj_philox_counter<words>(i, offset), (u64)0, k0, k1, product).even, i, word);
}
"""

# By number of lanes: the macro of a machine that has the form, the bits and last arguments of the product of even lanes, and letters
# of the vector ABI.
_FORMS: Final = {
    4: ("__SSE2__", "128", "", "bc"),
    8: ("__AVX2__", "256", "", "d"),
    16: ("__AVX512F__", "512_mask", ", (i64x8){}, (u8)-1", "e"),
}
_PARAMETERS: Final = "({t} low, {t} high, i64 offset, u32 k0, u32 k1)"


# By number of words of an element: the function that draws whole chunks.
FILLS: Final = {1: "philox_fill_1", 2: "philox_fill_2"}
# Its parameters, and the place of each row of words of chunk c.
_FILLED: Final = {
    "philox_fill_1": ("(u32* to, u32 k0, u32 k1, i64 first, i64 chunks)",
                      "to + 64 * c", "to + 64 * c + 16", "to + 64 * c + 32", "to + 64 * c + 48"),
    "philox_fill_2": ("(u32* to, u32* low, u32 k0, u32 k1, i64 first, i64 chunks)",
                      "to + 32 * c", "low + 32 * c", "to + 32 * c + 16", "low + 32 * c + 16"),
}  # fmt: skip


def _declaration(word: str) -> str:
    function = f"u32 fjv_philox_{word}{_PARAMETERS.format(t='u32')} noexcept;"
    return f'#pragma omp declare simd uniform(offset, k0, k1) notinbranch\nextern "C" __attribute__((const)) {function}\n'


def _call(function: str, word: str) -> str:
    words, which = word.split("_")
    return f"{function}<{words}>(low, high, offset, k0, k1, {which})"


def _wrapper(word: str, value: str) -> str:
    head = f"FI u32 fj_philox_{word}(u32 k0, u32 k1, i64 offset, i64 i)"
    return f"{head} {{ const u32 low = (u32)i, high = (u32)((u64)i >> 32); return {value}; }}\n"


# fj_philox_<words>_<word>: one word of element i of a draw whose 64-bit key is (k1, k0). A caller computes the halves of the key
# outside of its loop: gcc refuses vector forms whose uniform arguments are computed, or only cast, inside. The position is passed in
# halves, so that a vector holds as many of them as it holds words.
#
# fj_philox_fill_<words>: the words of chunks in the order of their elements, the second words of elements in `low`. first: counter.
DECLARATIONS: Final = (
    _ROUNDS
    + "#if defined(__SSE2__)\n"
    + "".join(_declaration(w) + _wrapper(w, f"fjv_philox_{w}(low, high, offset, k0, k1)") for w in WORDS)
    + "#else\n" + "".join(_wrapper(w, _call("fj_philox_one", w)) for w in WORDS) + "#endif\n"
    + "".join(f'extern "C" void fj_{name}{_FILLED[name][0]} noexcept;\n' for name in FILLS.values())
)  # fmt: skip


def definitions(called: Collection[str]) -> str:
    """The scalar and vector forms of the functions `fj_<name>` in `called`, which a unit needs after its own text."""
    words, fills = [w for w in WORDS if f"philox_{w}" in called], [name for name in FILLS.values() if name in called]
    if not words and not fills:
        return ""
    head = "#define FJ_BITS extern \"C\" __attribute__((weak, visibility(\"hidden\")))\n"
    ones = "".join(_form("u32", f"fj_1_philox_{w}", f"fjv_philox_{w}", _call("fj_philox_one", w)) for w in words)
    forms = "#if defined(__SSE2__)\n" + ones + "".join(_lanes(n, words) for n in _FORMS) + "#endif\n"
    return head + forms + (_CHUNK + "".join(map(_fill, fills)) if fills else "")


# The words of 16 counters, word k of each in `to[k]`, in the widest vectors of the machine.
_CHUNK: Final = "".join(
    f"{word} defined({_FORMS[n][0]})\nenum {{ FJ_PHILOX_LANES = {n} }};\ntypedef u64x{n // 2} fj_philox_v;\n"
    for word, n in (("#if", 16), ("#elif", 8), ("#elif", 4))
) + """\
#else
enum { FJ_PHILOX_LANES = 2 };
typedef u64 fj_philox_v;
#endif
FI void fj_philox_chunk(u32* const (&to)[4], u64 first, u32 k0, u32 k1) {
  typedef fj_philox_v V;
  typedef V W __attribute__((aligned(4), may_alias));
  const auto product = [](V c, u32 m) __attribute__((always_inline)) { return fj_philox_product(c, m); };
  V lanes = {};
#if defined(__SSE2__)
  for (int i = 0; i < FJ_PHILOX_LANES / 2; i++) lanes[i] = 2 * i;
#endif
#pragma GCC unroll 4
  for (int at = 0; at < 16; at += FJ_PHILOX_LANES) {
    const V even = lanes + (first + at);
    const auto b = fj_philox_rounds(even, even + 1, k0, k1, product);
    for (int k = 0; k < 4; k++) *(W*)(to[k] + at) = (b.even[k] & 0xffffffffu) | b.odd[k] << 32;
  }
}
"""


def _fill(name: str) -> str:
    """The function that draws whole chunks."""
    parameters, *rows = _FILLED[name]
    chunk = f"u32* const rows[] = {{{', '.join(rows)}}}; fj_philox_chunk(rows, (u64)first + 16 * c, k0, k1);"
    return f"FJ_BITS void fj_{name}{parameters} noexcept {{\n  for (i64 c = 0; c < chunks; c++) {{ {chunk} }}\n}}\n"


def _lanes(n: int, words: Iterable[str]) -> str:
    """The forms for vectors of `n` lanes."""
    macro, product, last, letters = _FORMS[n]
    half = n // 2
    functions = f"""\
typedef u32 u32x{n} __attribute__((vector_size({4 * n})));
typedef i32 i32x{n} __attribute__((vector_size({4 * n})));
typedef u64 u64x{half} __attribute__((vector_size({4 * n})));
typedef i64 i64x{half} __attribute__((vector_size({4 * n})));
FI u64x{half} fj_philox_product(u64x{half} c, u32 m) {{
  return (u64x{half})__builtin_ia32_pmuludq{product}((i32x{n})c, (i32x{n})((u64x{half}){{}} + m){last});
}}
template <int words> FI u32x{n} fj_philox_lanes(u32x{n} low, u32x{n} high, i64 offset, u32 k0, u32 k1, int word) {{
  typedef u64x{half} V;
  const V even = ((V)low & 0xffffffffu) | (V)high << 32, odd = (V)low >> 32 | (V)high >> 32 << 32;
  const auto product = [](V c, u32 m) __attribute__((always_inline)) {{ return fj_philox_product(c, m); }};
  const auto b = fj_philox_rounds(fj_philox_counter<words>(even, offset), fj_philox_counter<words>(odd, offset), k0, k1, product);
  return (u32x{n})((fj_philox_word<words>(b.even, even, word) & 0xffffffffu) | fj_philox_word<words>(b.odd, odd, word) << 32);
}}
"""
    forms = "".join(
        _form(f"u32x{n}", f"fj_{letter}_philox_{w}", f"_ZGV{letter}N{n}vvuuu_fjv_philox_{w}", _call("fj_philox_lanes", w))
        for w in words for letter in letters
    )  # fmt: skip
    return f"#if defined({macro})\n{functions}{forms}#endif\n"


def _form(t: str, name: str, symbol: str, value: str) -> str:
    parameters = _PARAMETERS.format(t=t)
    return f'FJ_BITS {t} {name}{parameters} asm("{symbol}");\nFJ_BITS {t} {name}{parameters} {{ return {value}; }}\n'
