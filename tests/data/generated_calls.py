"""Calls generated from torch's signatures: every form of every argument, one change at a time.

torch_signatures.json.gz (make_signatures.py) holds, for each public function, its parameters and arguments that it takes. Each is
then called by position and by keyword, and with each argument varied: dtypes, layouts, empty, 0-d and one-element tensors, numbers
in place of tensors, negative and impossible dims, left-out and explicit options, out=, dtype=, large inputs. compare_calls.py runs
them (`--generated`), test_generated_calls.py a sample.
"""
from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.data.call_rows import DTYPES

SIGNATURES = Path(__file__).parent / "torch_signatures.json.gz"
_MADE = re.compile(r"^(t|at)\(('\w+'|\d+)(?:, )?([\d, ]*)((?:, )?seed=[\d.]+)?\)(.*)$")
_WRONG_DIMS = ("-1", "-2", "0", "7", "-7", "True", "1.5", "None")
_NUMBERS = ("0", "-1", "2", "0.5", "-2.5", "True", "1j", "inf", "nan", "None", "'a'")
_LISTS = ("[]", "[0]", "[-1]", "(1, 0)", "[0, 0]", "[1, 1, 1]", "[7]", "1", "-1", "[1.5]", "None")
_STRINGS = ("'sum'", "'none'", "'bogus'", "1")
_DTYPES = ("T.float64", "T.float32", "T.float16", "T.int64", "T.int32", "T.complex64", "T.bool", "None", "1")
_LARGE = "300, 240"  # in place of a matrix of f4, where sums and scans lose digits
_ACCUMULATE = re.compile(r"sum|mean|var|std|prod|norm|softmax|median|trapezoid|trapz|cov$|corrcoef|histc|loss|mm$|matmul|cdist|dist$")
# These kill torch 2.13's process, or compare uninitialised memory.
_LEFT_OUT = re.compile(r"lcm\(|gcd\(|T\.range\(|segment_reduce|batch_norm_update_stats|diagflat|cartesian_prod|T\.clone|\.new_|"
                       r"deep_?copy|T\.from_|embedding_renorm")


@cache
def signatures() -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(SIGNATURES.read_bytes()))  # type: ignore[no-any-return]


def _text(path: str, args: list[tuple[str, str]], keywords: frozenset[str], more: str = "") -> str:
    parts = [f"{name}={value}" if name in keywords else value for name, value in args]
    if path.startswith("."):
        return f"{parts[0]}{path}({', '.join(parts[1:] + ([more] if more else []))})"
    return f"{path}({', '.join(parts + ([more] if more else []))})"


def _tensor_forms(value: str) -> Iterator[str]:
    """Other tensors in place of `value`: layouts, sizes, and values that are not tensors."""
    made = _MADE.match(value)
    if made is None:
        return
    maker, code, shape, seed, _ = made.groups()
    seed, sizes = seed or "", [s for s in shape.split(", ") if s]
    lead = f"{maker}({code}"

    def of(new: list[str]) -> str:
        return f"{lead}{''.join(f', {s}' for s in new)}{seed})"

    if sizes:
        yield f"{of(sizes[::-1])}.permute({', '.join(str(i) for i in reversed(range(len(sizes))))})"
        yield f"{of([*sizes[:-1], str(2 * int(sizes[-1]))])}[..., ::2]"
        yield f"{of(['1', *sizes[1:]])}.expand({', '.join(sizes)})"
        yield of(["0", *sizes[1:]])
        yield of([*sizes[:-1], "0"])
        yield of(["1"] * len(sizes))
        yield of(["2", *sizes])
        yield of(sizes[1:]) if len(sizes) > 1 else of(["1"])
    if maker == "t":
        yield f"{lead}{seed})"
        yield f"special({code})"
    else:
        yield f"-{value}"
        yield f"{value} + 5"
        yield f"{value}.to(T.int32)"
        yield f"{value}.to(T.float32)"
    yield from ("2", "2.5", "None", "[1.0, 2.0]")


def _other_dtypes(value: str, codes: Iterator[str] | tuple[str, ...] = tuple(DTYPES)) -> Iterator[str]:
    if value.startswith("t('"):
        old = value[3 : value.index("'", 3)]
        yield from (value.replace(f"'{old}'", f"'{code}'", 1) for code in codes if code != old)


def _number_forms(name: str, kind: str) -> tuple[str, ...]:
    if kind.startswith("bool"):
        return ("True", "False", "1", "None")
    if kind == "dtype":
        return _DTYPES
    if kind.startswith("str"):
        return _STRINGS
    if kind.startswith("number"):
        return _NUMBERS
    return _LISTS if kind.startswith("ints") else (*_WRONG_DIMS, "2")


def _variants(record: dict[str, Any], base: list[tuple[str, str]], first: bool) -> Iterator[str]:
    path, params = record["path"], {p[0]: (p[1], p[2], p[3]) for p in record["params"]}
    only = frozenset(n for n, p in params.items() if p[2])
    yield _text(path, base, only)
    named = frozenset(params) - ({base[0][0]} if path.startswith(".") else frozenset())
    yield _text(path, base, named)
    if path.startswith("T.") and path.count(".") == 1 and params[base[0][0]][0] == "tensor" and first:
        yield _text(path[1:], base, only)  # the method
    for i, (name, value) in enumerate(base):
        kind = params[name][0]
        forms: list[str] = []
        if kind.startswith("tensor"):
            forms = [*_tensor_forms(value), *(_other_dtypes(value) if first or i == 0 else ())]
        elif first:
            forms = [f for f in _number_forms(name, kind) if f != value]
        for form in forms:
            if not (path.startswith(".") and i == 0 and form[0] not in "ats-"):
                yield _text(path, [*base[:i], (name, form), *base[i + 1 :]], only)
    for code in DTYPES:  # all tensors alike
        changed = [(n, next(_other_dtypes(v, (code,)), v)) for n, v in base]
        if changed != base:
            yield _text(path, changed, only)
    if not first:
        return
    for name, (kind, optional, _) in params.items():
        if optional and kind and not kind.startswith("tensor") and name not in dict(base):
            yield from (_text(path, base, only, f"{name}={form}") for form in _number_forms(name, kind))
    for out in ("T.empty(0)", "T.empty(0, dtype=T.float64)", "T.empty(0, dtype=T.int64)", "T.empty(0, dtype=T.bool)", "T.empty(2, 5)"):
        yield _text(path, base, only, f"out={out}")
    if not _ACCUMULATE.search(path):
        return
    large = [(n, v.replace("'f4', 3, 4", f"'f4', {_LARGE}")) for n, v in base]
    if large != base:
        yield _text(path, large, only)


def generated() -> dict[str, list[str]]:
    """The calls of each function, without repetition."""
    found: dict[str, dict[str, None]] = {}
    for record in signatures():
        for i, base in enumerate(record["bases"]):
            calls = _variants(record, [tuple(pair) for pair in base], i == 0)
            found.setdefault(record["path"].lstrip("."), {}).update(dict.fromkeys(c for c in calls if not _LEFT_OUT.search(c)))
    return {path: list(calls) for path, calls in found.items()}


def sample(step: int = 17) -> dict[str, list[str]]:
    """Every `step`-th call, over all functions."""
    chosen: dict[str, list[str]] = {}
    at = 0
    for path, calls in generated().items():
        for call in calls:
            at += 1
            if at % step == 0 and _LARGE not in call:
                chosen.setdefault(path, []).append(call)
    return chosen
