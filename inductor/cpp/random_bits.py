"""Random bits in generated code: Philox4x32-10, the element of a draw in each lane of a vector.

Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. The bits equal the bits of `eager.optable.random`, which
states where each element of a draw has its words.

A product of 32 by 32 bits has 64, which the compiler's vectoriser multiplies in full. The vector forms here hold even and odd lanes
apart, in words of 64 bits whose upper halves are never read, so that a round is two products, two shifts and two exclusive ors.
Owns the declarations of `fj_philox_<words>_<word>` and the definitions of the forms that a unit uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

WORDS: Final = ("1_0", "2_0", "2_1")  # <words of an element>_<word>

# V holds counters; `product` multiplies them by a constant of 32 bits. The lower half of each element is the word.
_ROUNDS: Final = """\
template <class V> struct fj_block { V word[4]; };
template <class V, class P> FI fj_block<V> fj_philox_rounds(V c0, u32 k0, u32 k1, P product) {
  V c1 = c0 >> 32, c2 = {}, c3 = {};
#pragma GCC unroll 10
  for (int i = 0; i < 10; i++) {
    const auto p0 = product(c0, 0xD2511F53u), p1 = product(c2, 0xCD9E8D57u);
    c0 = (p1 >> 32) ^ c1 ^ k0; c2 = (p0 >> 32) ^ c3 ^ k1; c1 = p1; c3 = p0; k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}
template <int words, class V, class P> FI V fj_philox_of(V i, i64 offset, u32 k0, u32 k1, int word, P product) {
  const auto b = fj_philox_rounds((i >> (words == 1 ? 6 : 5) << 4 | (i & 15)) + (u64)offset, k0, k1, product);
  if constexpr (words == 2) return (i & 16) != 0 ? b.word[2 + word] : b.word[word];
  else return (i & 32) != 0 ? ((i & 16) != 0 ? b.word[3] : b.word[2]) : (i & 16) != 0 ? b.word[1] : b.word[0];
}
template <int words> FI u32 fj_philox_one(u32 low, u32 high, i64 offset, u32 k0, u32 k1, int word) {
  const auto product = [](u64 c, u32 m) __attribute__((always_inline)) { return (c & 0xffffffffu) * m; };
  return (u32)fj_philox_of<words>((u64)high << 32 | low, offset, k0, k1, word, product);
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
# outside of its loop: gcc refuses vector forms whose uniform arguments are computed, or only cast, inside. The position is passed in halves, so that
# a vector holds as many of them as it holds words.
DECLARATIONS: Final = (
    _ROUNDS
    + "#if defined(__SSE2__)\n"
    + "".join(_declaration(w) + _wrapper(w, f"fjv_philox_{w}(low, high, offset, k0, k1)") for w in WORDS)
    + "#else\n" + "".join(_wrapper(w, _call("fj_philox_one", w)) for w in WORDS) + "#endif\n"
)  # fmt: skip


def definitions(words: Iterable[str]) -> str:
    """The scalar and vector forms of `fj_philox_<words>_<word>`, which a unit needs after its own text."""
    chosen = sorted(words)
    if not chosen:
        return ""
    head = "#if defined(__SSE2__)\n#define FJ_BITS extern \"C\" __attribute__((weak, visibility(\"hidden\")))\n"
    ones = "".join(_form("u32", f"fj_1_philox_{w}", f"fjv_philox_{w}", _call("fj_philox_one", w)) for w in chosen)
    return head + ones + "".join(_lanes(n, chosen) for n in _FORMS) + "#endif\n"


def _lanes(n: int, words: Iterable[str]) -> str:
    """The forms for vectors of `n` lanes."""
    macro, product, last, letters = _FORMS[n]
    half = n // 2
    functions = f"""\
typedef u32 u32x{n} __attribute__((vector_size({4 * n})));
typedef i32 i32x{n} __attribute__((vector_size({4 * n})));
typedef u64 u64x{half} __attribute__((vector_size({4 * n})));
typedef i64 i64x{half} __attribute__((vector_size({4 * n})));
template <int words> FI u32x{n} fj_philox_lanes(u32x{n} low, u32x{n} high, i64 offset, u32 k0, u32 k1, int word) {{
  typedef u64x{half} V;
  const auto product = [](V c, u32 m) __attribute__((always_inline)) {{
    return (V)__builtin_ia32_pmuludq{product}((i32x{n})c, (i32x{n})((V){{}} + m){last});
  }};
  const V even = fj_philox_of<words>(((V)low & 0xffffffffu) | (V)high << 32, offset, k0, k1, word, product);
  const V odd = fj_philox_of<words>((V)low >> 32 | ((V)high >> 32 << 32), offset, k0, k1, word, product);
  return (u32x{n})((even & 0xffffffffu) | odd << 32);
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
