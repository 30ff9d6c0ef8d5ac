"""Write torch_reference.json, promotion.json, torch_calls.json.gz and torch_gradients.json.gz: torch's results for
expressions.py, for pairs of dtypes, for the calls of calls.py and for their backward.

Run with a Python that has torch (2.13 made the committed files): `python tests/data/make_reference.py`. With
`--calls FILE` it writes only the outcomes of the calls; compare_calls.py runs it so.
The tests read only the JSON and need no torch.
"""
from __future__ import annotations

import gzip
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
from tests.data import gradients  # noqa: E402
from tests.data.calls import calls, outcome  # noqa: E402
from tests.data.expressions import expressions, inputs  # noqa: E402

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
UNSIGNED = "uint16 uint32 uint64".split()  # torch promotes these but runs few ops on them
NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 1j}


def describe(result: Any) -> Any:
    """Shape, dtype, strides and values; sequences element by element; anything else as it prints."""
    if isinstance(result, torch.Tensor):
        values = result.detach()
        if values.is_complex():
            values = torch.view_as_real(values)
        if values.dtype.is_floating_point:
            flat = [float(f"{v:.9g}") for v in values.double().reshape(-1).tolist()]
        else:
            flat = [int(v) for v in values.reshape(-1).tolist()]
        return {"shape": list(result.shape), "dtype": str(result.dtype)[6:], "stride": list(result.stride()), "values": flat}
    if isinstance(result, (tuple, list)) and any(isinstance(r, torch.Tensor) for r in result):
        return [describe(r) for r in result]
    return {"repr": repr(result)}


def evaluate(text: str) -> Any:
    try:
        return describe(eval(text, inputs(torch)))  # noqa: S307 - our own expressions
    except Exception as error:  # the class and the text are the reference
        return {"error": type(error).__name__.lstrip("_"), "bases": [c.__name__ for c in type(error).__mro__],
                "text": str(error).split("\n")[0][:300]}  # fmt: skip


def dtype_of(fn: Any) -> str:
    try:
        return str(fn().dtype)[6:]
    except (RuntimeError, TypeError):
        return "error"


def promotion() -> dict[str, Any]:
    """Result dtypes of +, / and == over pairs: dims with dims, dims with 0-d, and dims with numbers."""
    result: dict[str, Any] = {"dims": {}, "zero_dim": {}, "number": {}, "types": {}}
    ops = {"add": torch.add, "div": torch.div, "eq": torch.eq, "where": lambda a, b: torch.where(torch.tensor(True), a, b)}
    for a in DTYPES:
        x = torch.ones(2).to(getattr(torch, a))
        for b in DTYPES:
            y = torch.ones(2).to(getattr(torch, b))
            result["dims"][f"{a},{b}"] = [dtype_of(lambda f=f: f(x, y)) for f in ops.values()]
            result["zero_dim"][f"{a},{b}"] = [dtype_of(lambda f=f: f(x, y[0])) for f in ops.values()]
        for name, value in NUMBERS.items():
            result["number"][f"{a},{name}"] = [dtype_of(lambda f=f: f(x, value)) for f in ops.values()]
    for a in DTYPES + UNSIGNED:
        for b in DTYPES + UNSIGNED:
            try:
                result["types"][f"{a},{b}"] = str(torch.promote_types(getattr(torch, a), getattr(torch, b)))[6:]
            except RuntimeError:
                result["types"][f"{a},{b}"] = "error"
    return {"ops": list(ops), **result}


def write_calls(path: Path) -> None:
    """The outcome of every call, compressed; the same bytes for the same outcomes."""
    warnings.simplefilter("ignore")
    found = {family: {text: outcome(torch, text) for text in texts} for family, texts in calls().items()}
    _write(path, found)
    print(f"torch {torch.__version__}: {sum(map(len, found.values()))} calls, {path.stat().st_size} bytes")


def write_gradients(path: Path) -> None:
    """The gradients of every call that has some, and which tensors its backward needs unchanged."""
    of_calls = {text: found for _, text in gradients.differentiable_calls() if (found := gradients.gradients(torch, text)) is not None}
    changed = {text: found for text in gradients.one_each() if (found := gradients.changed(torch, text)) is not None}
    _write(path, {"gradients": of_calls, "changed": changed})
    print(f"torch {torch.__version__}: {len(of_calls)} gradients, {path.stat().st_size} bytes")


def _write(path: Path, found: Any) -> None:
    path.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0))


def main() -> None:
    if "--calls" in sys.argv:
        write_calls(Path(sys.argv[sys.argv.index("--calls") + 1]))
        return
    warnings.simplefilter("ignore")
    found = {family: {text: evaluate(text) for text in texts} for family, texts in expressions().items()}
    lines = []
    for family, items in found.items():
        body = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in items.items())
        lines.append(f"{json.dumps(family)}: {{\n{body}\n}}")
    (HERE / "torch_reference.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    (HERE / "promotion.json").write_text(json.dumps(promotion(), indent=0) + "\n")
    print(f"torch {torch.__version__}: {sum(map(len, found.values()))} expressions")
    write_calls(HERE / "torch_calls.json.gz")
    write_gradients(HERE / "torch_gradients.json.gz")


if __name__ == "__main__":
    main()
