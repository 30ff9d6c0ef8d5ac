"""Compare eager with torch over the table of calls.py.

`python -m tests.data.compare_calls [--torch PYTHON] [--texts] [PART...]` prints every difference in calls that contain
a PART. With `--torch` it compares with the torch of that interpreter, otherwise with the stored outcomes
(torch_calls.json.gz). `--texts` also prints errors of the same class whose first lines differ. call_differences.py lists
the intended differences. test_calls.py asserts that `difference` finds no others.

`--generated` compares the calls of generated_calls.py instead. With `--torch` these are all forms of all arguments of
torch's signatures, otherwise the stored sample (torch_generated.json.gz), which `--store FILE` writes.
generated_differences.py lists their known differences.
"""
from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eager
from eager import nn  # noqa: F401 - calls reach it as `T.nn`
from tests.data.call_differences import DIFFERENCES, excused
from tests.data.calls import calls, outcome
from tests.data.generated_calls import generated, sample
from tests.data.generated_differences import KNOWN

HERE = Path(__file__).parent
STORED = HERE / "torch_calls.json.gz"
GENERATED = HERE / "torch_generated.json.gz"
_RTOL = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 4e-5, "complex64": 4e-5, "float64": 1e-7, "complex128": 1e-7}


def stored(path: Path = STORED) -> dict[str, dict[str, Any]]:
    """torch's outcomes by family and call."""
    return json.loads(gzip.decompress(path.read_bytes()))  # type: ignore[no-any-return]


def run_torch(python: str) -> dict[str, dict[str, Any]]:
    """The outcomes under the torch of another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.json.gz"
        command = [python, str(HERE / "make_reference.py"), "--calls", str(path)]
        subprocess.run(command, check=True, env={}, stdout=subprocess.DEVNULL)
        return stored(path)


def run_torch_generated(python: str, requested: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """Outcomes of generated calls under the torch of another interpreter. Calls that kill the interpreter are left out."""
    with tempfile.TemporaryDirectory() as folder:
        calls_file, out = Path(folder) / "calls.json", Path(folder) / "out.jsonl"
        texts = [text for group in requested.values() for text in group]
        calls_file.write_text(json.dumps(texts))
        out.touch()
        while (done := len(out.read_text().splitlines())) < len(texts):
            command = [python, str(HERE / "run_calls.py"), str(calls_file), str(out), str(done)]
            failed = subprocess.run(command, env={}, stderr=subprocess.DEVNULL).returncode
            if failed and len(out.read_text().splitlines()) < len(texts):
                with out.open("a") as file:
                    file.write("null\n")
        found = dict(zip(texts, map(json.loads, out.read_text().splitlines()), strict=True))
    return {family: {text: found[text] for text in group if found[text] is not None} for family, group in requested.items()}


def generated_differences(reference: dict[str, dict[str, Any]], parts: list[str], texts: bool = False) -> Iterator[tuple[str, str, str]]:
    """(function, call, difference) for every generated call that differs, intended and known differences included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family, group in reference.items():
            for text, theirs in group.items():
                if parts and not any(p in text or p == family for p in parts):
                    continue
                eager.manual_seed(0)
                ours = outcome(eager, text)
                found = difference(in_order_of(ours, theirs) if text.startswith("T.linalg.eigvals(") else ours, theirs, texts)
                if found:
                    yield family, text, found


def in_order_of(ours: Any, theirs: Any) -> Any:
    """Our eigenvalues of one matrix, sorted into the order of torch's eigenvalues by nearest match.

    LAPACK returns the eigenvalues of a general matrix in an order that differs between builds.
    """
    if "v" not in ours or "v" not in theirs or len(theirs["n"]) != 1 or ours["n"] != theirs["n"]:
        return ours
    left = [complex(*pair) for pair in zip(ours["v"][::2], ours["v"][1::2], strict=True)]
    values: list[float] = []
    for wanted in map(complex, theirs["v"][::2], theirs["v"][1::2]):
        nearest = min(left, key=lambda value: abs(value - wanted))
        left.remove(nearest)
        values += [nearest.real, nearest.imag]
    return {**ours, "v": values}


def close(a: float, b: float, rtol: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= rtol * (0.25 + abs(b))


def _tensors(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """The first property in which two tensors differ."""
    for key, what in (("d", "dtype"), ("n", "shape"), ("device", "device")):
        if ours.get(key) != theirs.get(key):
            return f"{what}: {ours.get(key)} against torch's {theirs.get(key)}"
    if ours["s"] != theirs["s"]:
        return f"strides: {ours['s']} against torch's {theirs['s']}"
    if "v" not in theirs:
        return None
    if ours["a"] != theirs["a"]:
        return f"memory: shared with tensor {ours['a']}, in torch with tensor {theirs['a']} (-1: not shared)"
    if ours["a"] >= 0 and ours["o"] != theirs["o"]:
        return f"offset: {ours['o']} against torch's {theirs['o']}"
    rtol = _RTOL.get(theirs["d"], 0.0)
    for x, y in zip(ours["v"], theirs["v"], strict=True):
        if not close(x, y, rtol):
            return f"values: {x} against torch's {y} in {ours['v'][:12]} against {theirs['v'][:12]}"
    return None


def difference(ours: Any, theirs: Any, texts: bool = False) -> str | None:
    """Description of the first difference between two outcomes, or None if they agree."""
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return f"{str(ours)[:200]} against torch's {len(theirs)} results"
        return next((d for a, b in zip(ours, theirs, strict=True) if (d := difference(a, b, texts))), None)
    if isinstance(ours, list):
        return f"{len(ours)} results against torch's {str(theirs)[:200]}"
    if "error" in theirs:
        if "error" not in ours:
            return f"no error, but {str(ours)[:100]}, against torch's {theirs['error'][0]}: {theirs['text']}"
        if theirs["error"][0] not in ours["error"]:  # a handler of torch's class also catches its subclasses
            return f"{ours['error'][0]}: {ours['text']!r} against torch's {theirs['error'][0]}: {theirs['text']!r}"
        return f"text {ours['text']!r} against torch's {theirs['text']!r}" if texts and ours["text"] != theirs["text"] else None
    if "error" in ours:
        return f"{ours['error'][0]}: {ours['text']}"
    if "repr" in theirs or "repr" in ours:
        same = ours.get("repr") == theirs.get("repr")
        return None if same else f"{ours.get('repr', ours)} against torch's {theirs.get('repr', theirs)}"
    return _tensors(ours, theirs)


def differences(reference: dict[str, dict[str, Any]], parts: list[str], texts: bool = False) -> Iterator[tuple[str, str, str]]:
    """(family, call, difference) for every call that contains one of the parts and is not excused."""
    for family, text, found in all_differences(reference, parts, texts):
        if not excused(text, reference[family].get(text), found):
            yield family, text, found


def all_differences(reference: dict[str, dict[str, Any]], parts: list[str], texts: bool = False) -> Iterator[tuple[str, str, str]]:
    """As `differences`, with the intended differences included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family, group in calls().items():
            for text in group:
                if parts and not any(p in text or p == family for p in parts):
                    continue
                theirs = reference[family].get(text)
                if theirs is None:
                    yield family, text, "torch's outcome is not stored: run make_reference.py again"
                    continue
                found = difference(outcome(eager, text), theirs, texts)
                if found:
                    yield family, text, found


def compare_generated(given: argparse.Namespace) -> int:
    """Print the differences of generated calls by kind: values, then errors in one library only, then classes of errors."""
    if given.store:
        found = run_torch_generated(given.torch, sample())
        given.store.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0))
        return 0
    wanted = {f: [c for c in group if not given.parts or f in given.parts or any(p in c for p in given.parts)]
              for f, group in generated().items()}  # fmt: skip
    reference = run_torch_generated(given.torch, wanted) if given.torch else stored(GENERATED)
    met: dict[str, list[tuple[str, str]]] = {kind: [] for kind in KINDS}
    for family, text, what in generated_differences(reference, given.parts, given.texts):
        if not excused(text, reference[family].get(text), what, DIFFERENCES + KNOWN):
            met[kind_of(what)].append((text, what))
    for kind, calls_ in met.items():
        print(f"==== {kind}: {len(calls_)}")
        for text, what in calls_:
            print(f"{text}\n    {what}")
    total = sum(map(len, met.values()))
    print(f"{sum(map(len, reference.values()))} calls; {total} differ: { {kind: len(found) for kind, found in met.items()} }")
    return 1 if total else 0


KINDS = ("result", "accepted", "refused", "error class")


def kind_of(what: str) -> str:
    """Kind of a difference: the results differ, only torch raises, only eager raises, or the classes of errors differ."""
    if what.startswith("no error") or re.match(r"\d+ results against torch's .*error", what):
        return "accepted"
    if re.match(r"\w+: ['\"].*against torch's \w+: ", what):
        return "error class"
    return "refused" if re.match(r"\w*(Error|Warning|Exception|Killed)\b|\{'error'", what) else "result"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="only calls that contain one of these, or families of these names")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch")
    parser.add_argument("--texts", action="store_true", help="compare the texts of errors too")
    parser.add_argument("--generated", action="store_true", help="compare the calls of generated_calls.py")
    parser.add_argument("--store", metavar="FILE", type=Path, help="with --generated --torch: write the sample's outcomes")
    given = parser.parse_args()
    if given.generated:
        return compare_generated(given)
    reference = run_torch(given.torch) if given.torch else stored()
    counts: Counter[str] = Counter()
    for family, text, found in differences(reference, given.parts, given.texts):
        counts[family] += 1
        print(f"{text}\n    {found}")
    print(f"{sum(map(len, calls().values()))} calls; {sum(counts.values())} differ: {dict(counts)}")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
