"""The functions of libmvec as generated code calls them: the result for an argument does not depend on its position.

libmvec has another algorithm for each vector width, and libm another for single numbers. The results of a vectorised loop would
therefore depend on its length, on its remainder and on the other code in it. So code calls `fjv_<name>`, whose forms for all
widths call the widest form of libmvec that the machine has.

Owns the declarations of these functions, and the definitions of the functions that a unit uses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from inductor.cpp import random_bits

# Operations of one argument that libm computes, by the same names. Some have vector forms in libmvec.
LIBM: Final = (
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "erf", "erfc", "lgamma",
)  # fmt: skip
LIBM_BINARY: Final = ("pow", "atan2", "fmod", "hypot")
# By letter of the vector ABI: bytes of a vector, the macro of a machine whose widest form this is, all forms called there.
_FORMS: Final = {
    "e": (64, "__AVX512F__", "bde"),
    "d": (32, "__AVX2__", "bd"),
    "c": (32, "__AVX__", "bc"),
    "b": (16, "__SSE2__", "b"),
}
_TYPES: Final = (("f32", 4, "f"), ("f64", 8, ""))
# Operations of the prelude that call others for which there are vector forms.
_CALLS: Final = {
    "remainder": ("fmod",), "floordiv": ("fmod",), "erfinv": ("log", "erf", "erfc"), "digamma": ("log", "tan"),
}  # fmt: skip

_HEAD: Final = "".join(
    f"typedef {t} {t}x{nbytes // size} __attribute__((vector_size({nbytes})));\n" for t, size, _ in _TYPES for nbytes in (16, 32, 64)
) + '#define FJ_FORM extern "C" __attribute__((weak, visibility("hidden")))\n'  # fmt: skip


def has_forms(vector_functions: frozenset[str], name: str, double: bool, arity: int) -> bool:
    """Whether libmvec has every form of a function that the compiler may call."""
    size = 8 if double else 4
    symbol = name if double else name + "f"
    return all(f"_ZGV{isa}N{nbytes // size}{'v' * arity}_{symbol}" in vector_functions for isa, (nbytes, _, _) in _FORMS.items())


def declaration(t: str, symbol: str, arity: int) -> str:
    """The prelude's declaration of a function with vector forms. GCC leaves a branch around a call that might write memory."""
    return f'__attribute__((simd("notinbranch"), const)) {t} fjv_{symbol}({", ".join([t] * arity)}) noexcept;'


def _definitions(functions: dict[str, tuple[str, int]], vector_functions: frozenset[str]) -> str:
    """The forms of `functions`: operation -> (name in libm, arity)."""
    texts = [
        _forms(t, size, name + suffix, arity, "1.5" if name == "acosh" else "0.5")
        for name, arity in functions.values()
        for t, size, suffix in _TYPES
        if has_forms(vector_functions, name, not suffix, arity)
    ]
    return _HEAD + "".join(texts) if texts else ""


def _forms(t: str, size: int, symbol: str, arity: int, filler: str) -> str:
    """All forms of one function, from the machine's widest form. filler: the argument of unused lanes."""
    text, word = "", "#if"
    for isa, (nbytes, macro, called) in _FORMS.items():
        lanes = nbytes // size
        wide, library = f"{t}x{lanes}", f"_ZGV{isa}N{lanes}{'v' * arity}_{symbol}"
        text += f'{word} defined({macro})\nextern "C" {wide} fj_lib_{symbol}({_parameters(wide, arity)}) asm("{library}");\n'
        text += "".join(_narrow(t, _FORMS[form][0] // size, lanes, symbol, arity, form) for form in called)
        one = ", ".join(f"({wide}){{{', '.join([x, *[filler] * (lanes - 1)])}}}" for x in "xy"[:arity])
        text += f'FJ_FORM {t} fj_1_{symbol}({_parameters(t, arity)}) asm("fjv_{symbol}");\n'
        text += f"FJ_FORM {t} fj_1_{symbol}({_parameters(t, arity)}) {{ return fj_lib_{symbol}({one})[0]; }}\n"
        word = "#elif"
    return text + "#endif\n"


def _narrow(t: str, lanes: int, wide_lanes: int, symbol: str, arity: int, form: str) -> str:
    """The form for vectors of `lanes`: the arguments repeated in a wide vector."""
    own = f"{t}x{lanes}"
    spread = ", ".join(str(i % lanes) for i in range(wide_lanes))
    kept = ", ".join(map(str, range(lanes)))
    name, parameters, target = f"fj_{lanes}_{symbol}", _parameters(own, arity), f"_ZGV{form}N{lanes}{'v' * arity}_fjv_{symbol}"
    if lanes == wide_lanes:
        body = f"return fj_lib_{symbol}({', '.join('xy'[:arity])});"
    else:
        arguments = ", ".join(f"__builtin_shufflevector({x}, {x}, {spread})" for x in "xy"[:arity])
        body = f"const auto w = fj_lib_{symbol}({arguments}); return __builtin_shufflevector(w, w, {kept});"
    return f'FJ_FORM {own} {name}({parameters}) asm("{target}");\nFJ_FORM {own} {name}({parameters}) {{ {body} }}\n'


def _parameters(t: str, arity: int) -> str:
    return ", ".join(f"{t} {x}" for x in "xy"[:arity])


@lru_cache(maxsize=64)  # the kernels of a process call few sets of operations
def forms_used(called: frozenset[str], vector_functions: tuple[str, ...] | frozenset[str]) -> str:
    """The definitions that a unit needs after its own text, which calls the operations `called` of the prelude."""
    names = called.union(*(_CALLS.get(op, ()) for op in called))
    functions = {op: (op, 1) for op in LIBM} | {op: (op, 2) for op in LIBM_BINARY}
    functions_text = _definitions({op: f for op, f in functions.items() if op in names}, frozenset(vector_functions))
    return functions_text + random_bits.definitions(names)
