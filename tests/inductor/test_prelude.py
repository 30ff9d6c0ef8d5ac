"""The prelude's scalar functions against numpy: special values included, vectorised or not."""
import ctypes
import math
import platform
import subprocess

import ml_dtypes
import numpy as np
import pytest

from eager.optable import loop_api
from eager.optable.random import draw_words
from inductor.base.toolchain import build, toolchain
from inductor.cpp.prelude import prelude
from inductor.cpp.random_bits import WORDS
from inductor.cpp.vector_math import forms_used, has_forms

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-40, 1e-8, 88.0, -104.0, 1e30]
UNARY = ("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma "
         "digamma sqrt floor ceil trunc round abs sign").split()  # fmt: skip
BINARY = "maximum minimum fmod remainder floordiv truncdiv pow atan2 copysign".split()


class _Text:
    def __init__(self, name, text):
        self.name, self.text, self.reusable, self.vector_bits = name, text, False, 0


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    lines = [f'extern "C" __attribute__((visibility("default"))) void {name}_{t}(const {t}* x, {t}* y, long n) {{\n'
             f"#pragma omp simd\n for (long i = 0; i < n; i++) y[i] = fj_{name}(x[i]); }}"
             for t in ("f32", "f64") for name in UNARY]  # fmt: skip
    for t in ("f32", "f64", "i64", "i32", "u8"):
        names = BINARY if t[0] == "f" else "maximum minimum fmod remainder floordiv truncdiv pow left_shift right_shift".split()
        lines += [f'extern "C" __attribute__((visibility("default"))) void {name}_{t}(const {t}* x, const {t}* z, {t}* y, long n) {{\n'
                  f"#pragma omp simd\n for (long i = 0; i < n; i++) y[i] = fj_{name}(x[i], z[i]); }}" for name in names]  # fmt: skip
    for h in ("f16", "bf16"):
        lines.append(f'extern "C" __attribute__((visibility("default"))) void from_{h}(const {h}* x, f32* y, long n) {{\n'
                     f"#pragma omp simd\n for (long i = 0; i < n; i++) y[i] = fj_from_{h}(x[i]); }}")  # fmt: skip
        lines.append(f'extern "C" __attribute__((visibility("default"))) void to_{h}(const f32* x, {h}* y, long n) {{\n'
                     f"#pragma omp simd\n for (long i = 0; i < n; i++) y[i] = fj_to_{h}(x[i]); }}")  # fmt: skip
    lines += [f'extern "C" __attribute__((visibility("default"))) void philox_{word}_{t}(i64 seed, i64 offset, i64 first, {t}* y, '
              "long n) {\n"
              f"const u32 low = (u32)seed, high = (u32)((u64)seed >> 32);\n#pragma omp simd\n for (long i = 0; i < n; i++) "
              f"y[i] = ({t})fj_philox_{word}(low, high, offset, first + i); }}"
              for word in WORDS for t in ("u32", "f64")]  # fmt: skip
    tools = toolchain()
    target = tmp_path_factory.mktemp("prelude") / "prelude.so"
    head, body = prelude(tools.vector_functions), "\n".join(lines)
    called = frozenset({*UNARY, *BINARY, *(f"philox_{word}" for word in WORDS)})
    text = head + body + forms_used(called, tools.vector_functions)
    build([_Text("prelude", text)], target, tools)
    return ctypes.CDLL(str(target))


def _call(library, symbol, inputs, out):
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*inputs, out)]
    getattr(library, symbol)(*pointers, ctypes.c_long(out.size))
    return out


def _ulps(got, want, t):
    with np.errstate(over="ignore"):
        scale = np.spacing(np.maximum(np.abs(want), np.finfo(t).tiny).astype(t)).astype(np.float64)
    return np.abs(got.astype(np.float64) - want.astype(np.float64)) / scale


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_unary_function_agrees_with_the_reference(library, name, t):
    kind = np.float32 if t == "f32" else np.float64
    rng = np.random.default_rng(0)
    x = np.concatenate([np.array(SPECIAL, kind), rng.uniform(-1, 1, 1000).astype(kind), rng.uniform(-40, 40, 1000).astype(kind)])
    with np.errstate(all="ignore"):
        want = getattr(loop_api.NUMPY, name)(x.astype(np.float64)).astype(kind)
    got = _call(library, f"{name}_{t}", [x], np.empty_like(x))
    assert np.array_equal(np.isnan(got), np.isnan(want)), x[np.isnan(got) != np.isnan(want)]
    finite = np.isfinite(want)
    assert np.array_equal(got[~finite & ~np.isnan(want)], want[~finite & ~np.isnan(want)])
    loose = {"lgamma": 64, "digamma": 512, "erfinv": 16, "sinh": 8, "cosh": 8, "erf": 3}.get(name, 5)
    error = np.minimum(_ulps(got[finite], want[finite], kind), np.abs(got[finite] - want[finite]) / np.finfo(kind).eps)
    assert error.max() <= loose, (x[finite][error.argmax()], error.max())


@pytest.mark.parametrize("t", ["f32", "f64", "i64", "i32", "u8"])
@pytest.mark.parametrize("name", [*BINARY, "left_shift", "right_shift"])
def test_binary_function_agrees_with_numpy(library, name, t):
    kind = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "u8": np.uint8}[t]
    if not hasattr(library, f"{name}_{t}"):
        pytest.skip(f"{name} is not defined for {t}")
    rng = np.random.default_rng(1)
    if t[0] == "f":
        values = np.array(SPECIAL, kind)
        x = np.concatenate([np.repeat(values, values.size), rng.uniform(-9, 9, 500).astype(kind)])
        z = np.concatenate([np.tile(values, values.size), rng.uniform(-9, 9, 500).astype(kind)])
    else:
        low = 0 if t == "u8" else -9
        x, z = rng.integers(low, 100, 600).astype(kind), rng.integers(low, 9, 600).astype(kind)
        if name in ("left_shift", "right_shift", "pow"):
            z = np.abs(z)
        if t in ("i64", "i32"):
            x[0], z[0] = np.iinfo(kind).min, 1 if "shift" in name or name == "pow" else -1
    with np.errstate(all="ignore"):
        want = np.asarray(getattr(loop_api.NUMPY, name)(x, z)).astype(kind)
        if name == "truncdiv" and t[0] != "f":
            safe = np.where(z == 0, 1, z)
            want = np.where(z == 0, 0, (np.sign(x.astype(object)) * np.sign(safe.astype(object)) * (
                np.abs(x.astype(object)) // np.abs(safe.astype(object)))) % (1 << 64)).astype(np.uint64).astype(kind)  # fmt: skip
    got = _call(library, f"{name}_{t}", [x, z], np.empty_like(x))
    if t[0] != "f":
        assert np.array_equal(got, want), (x[got != want][:5], z[got != want][:5], got[got != want][:5], want[got != want][:5])
        return
    wrong = ~((got == want) | (np.isnan(got) & np.isnan(want)))
    if name in ("pow", "atan2"):
        wrong &= ~(_ulps(np.nan_to_num(got), np.nan_to_num(want), kind) <= 5)
    assert not wrong.any(), (x[wrong][:5], z[wrong][:5], got[wrong][:5], want[wrong][:5])


@pytest.mark.parametrize("h, kind", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_half_conversions_round_to_even(library, h, kind):
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = _call(library, f"from_{h}", [every], np.empty(1 << 16, np.float32))
    assert np.array_equal(wide, every.view(kind).astype(np.float32), equal_nan=True)
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.integers(0, 1 << 32, 200000, dtype=np.uint32).view(np.float32), wide,
                        np.array([65504, 65519.9, 65520, 1e-8, 6e-8, 2.98e-8], np.float32)])  # fmt: skip
    with np.errstate(all="ignore"):
        want = x.astype(kind)
    got = _call(library, f"to_{h}", [x], np.empty(x.size, np.uint16)).view(kind)
    assert np.array_equal(got.astype(np.float32), want.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("t, dtype", [("u32", np.uint32), ("f64", np.float64)])
@pytest.mark.parametrize("word", WORDS)
def test_philox_equals_the_eager_kernel(library, word, t, dtype):
    """In vectors of any width, in the rest of a loop, and where the lower half of the counter or of the position overflows."""
    seed, offset = 0xF23456789ABCDEF0 - (1 << 64), (1 << 32) - 35
    words, which = map(int, word.split("_"))
    for first, count in ((0, 1), (5, 3), (0, 20), (3, 131), ((1 << 32) - 70, 131)):
        out = np.empty(count, dtype)
        draw = getattr(library, f"philox_{word}_{t}")
        draw(ctypes.c_int64(seed), ctypes.c_int64(offset), ctypes.c_int64(first), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(count))
        skipped = first // 64 * 64
        expected = draw_words(np, seed, offset + skipped * words // 4, first - skipped + count, words)
        assert np.array_equal(out, expected[which, first - skipped :])


def test_libmvec_forms_are_declared_where_they_exist(library):
    forms = toolchain().vector_functions
    if not any(f.endswith("_expf") for f in forms):
        pytest.skip("this libc has no libmvec")
    text = prelude(forms)
    assert 'simd("notinbranch"), const)) f32 fjv_exp2f(f32)' in text and 'simd("notinbranch"), const)) f32 fmodf' not in text


@pytest.mark.parametrize("name, t, low, high", [
    ("exp", "f32", -103.0, 88.7), ("exp", "f64", -744.0, 709.7), ("tanh", "f32", -18.0, 18.0), ("erf", "f32", -5.0, 5.0),
])  # fmt: skip
def test_exponentials_are_good_to_one_ulp_over_their_whole_range(library, name, t, low, high):
    dtype = np.float32 if t == "f32" else np.float64
    x = np.concatenate([np.linspace(low, high, 200_001), np.linspace(-1, 1, 50_001)]).astype(dtype)
    got = _call(library, f"{name}_{t}", [x], np.empty_like(x)).astype(np.longdouble)
    wide = x.astype(np.longdouble)
    want = np.vectorize(math.erf, otypes=[np.float64])(x) if name == "erf" else getattr(np, name)(wide)
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(dtype))) < 1.05


@pytest.mark.parametrize("name, low, high", [("exp", 0, np.inf), ("tanh", -1, 1), ("erf", -1, 1)])
def test_exponentials_have_limits_and_keep_nan_of_either_sign(library, name, low, high):
    far = np.array([*(10.0**k for k in range(3, 39)), np.inf], np.float32)
    nan = np.array([np.nan, -np.nan], np.float32)
    x = np.concatenate([far, -far, nan])
    want = [high] * far.size + [low] * far.size + [np.nan, np.nan]
    assert np.array_equal(_call(library, f"{name}_f32", [x], np.empty_like(x)), np.array(want, np.float32), equal_nan=True)


def _vectorised(tmp_path, loop):
    """Whether GCC's report says that a loop runs in vectors; True for other compilers, which print no such report."""
    tools = toolchain()
    source = tmp_path / "loop.cpp"
    source.write_text(prelude(tools.vector_functions) + loop)
    command = [tools.cxx, *tools.flags, "-fopt-info-vec-optimized", "-c", str(source), "-o", str(tmp_path / "loop.o")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return "clang" in tools.version.lower() or "loop vectorized" in report


def test_a_chain_of_maxima_runs_in_vectors(tmp_path):
    """A window of a maximum pooling, in which some elements are outside of the image."""
    loop = """extern "C" void pool(const f32* RESTRICT x, f32* RESTRICT y, i64 at, i64 across) {
  const b8 row = at >= 0, column = across >= 0;
#pragma omp simd
  for (i64 i = 0; i < 64; i++) {
    const f32 a = row ? x[i] : 0.0f, b = row ? a : -__builtin_inff();
    const f32 c = column ? x[i + 192] : 0.0f, d = column ? c : -__builtin_inff();
    y[i] = fj_maximum(fj_maximum(fj_maximum(b, x[i + 64]), d), x[i + 128]);
  }
}
"""
    assert _vectorised(tmp_path, loop)


@pytest.mark.skipif(not has_forms(frozenset(toolchain().vector_functions), "cos", False, 1), reason="libmvec has no cosine")
def test_a_function_of_libm_runs_in_vectors_beside_a_choice(tmp_path):
    """A normal draw: a logarithm that chooses among its special values, then a cosine."""
    loop = """extern "C" void normal(const i32* RESTRICT u, const i32* RESTRICT v, f32* RESTRICT y) {
#pragma omp simd
  for (i64 i = 0; i < 64; i++) {
    const f32 a = (f32)u[i] * 5.9604645e-08f, b = (f32)v[i] * 3.7450704e-07f;
    y[i] = fj_sqrt(-2.0f * fj_log1p(fj_neg(a))) * fj_cos(b);
  }
}
"""
    assert _vectorised(tmp_path, loop)


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_the_prelude_compiles_for_older_processors(tmp_path, march):
    """With copies and transposes, whose forms depend on the widest vector."""
    tools = toolchain()
    if platform.machine() != "x86_64":
        pytest.skip("the architecture is another")
    calls = "  fj_stream(to, from, 64);\n  fj_fence();\n"
    for t, n in (("f32", 8), ("f32", 16), ("i64", 8), ("i64", 16)):
        calls += f"  fj_transpose<16, {n}, true>(({t}*)to, (i64)64, (const {t}*)from, (i64)64);\n"
    source = tmp_path / "older.cpp"
    source.write_text(prelude(()) + 'extern "C" void copy(f32* to, const f32* from) {\n' + calls + "}\n")
    flags = [f"-march={march}" if f.startswith("-march=") else f for f in tools.flags if not f.startswith("-mprefer")]
    subprocess.run([tools.cxx, *flags, "-c", str(source), "-o", str(tmp_path / "older.o")], check=True, capture_output=True)
