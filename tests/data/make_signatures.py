"""Write torch_signatures.json.gz: torch's public functions on tensors, their parameters, and arguments that each one takes.

Run with a Python that has torch (2.13 made the committed file): `python tests/data/make_signatures.py`. Parameters come from
torch's schemas; parameters of torch.nn.functional come from its annotations. The arguments of each signature are found by
trial: the script tries shapes, dtypes and numbers that fit the parameter's type and name until torch accepts them.
generated_calls.py varies the arguments.
"""
from __future__ import annotations

import gzip
import inspect
import itertools
import json
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
from tests.data.calls import names  # noqa: E402

SHAPES = ("3, 4", "3, 3", "4", "2, 3, 3", "2, 3, 6", "2, 3, 5, 5", "1, 2, 4, 4, 4", "")
_TYPES = {"Tensor": "tensor", "Optional[Tensor]": "tensor?", "List[Tensor]": "tensors", "int": "int", "Optional[int]": "int?",
          "bool": "bool", "Optional[bool]": "bool?", "float": "number", "number": "number", "Optional[float]": "number?",
          "Optional[number]": "number?", "List[int]": "ints", "Optional[List[int]]": "ints?", "str": "str",
          "Optional[str]": "str?"}  # fmt: skip
# Functions whose results are random or undefined memory, or that return no tensor, cannot be compared.
_SKIPPED = re.compile(r"empty|rand|normal|bernoulli|multinomial|dropout|uniform|exponential|geometric|cauchy|poisson|resize|^set_|"
                      r"cudnn|mkldnn|miopen|mps|quantize|backward|is_|fbgemm|sparse|nested|_forward|record_stream|binomial|"
                      r"data_ptr|storage|numpy|rrelu|fractional|to_dense|coalesce|^_|values|indices$|crow|ccol|indices_|from_file|"
                      r"^save$|pin_memory|_copy$|sym_|choose_qparams|gumbel|seed|gru|lstm|rnn|ctc|has_torch|multi_head|native|"
                      r"scaled_dot")  # fmt: skip


def _of_schemas() -> Iterator[tuple[str, list[tuple[str, str, bool, bool]]]]:
    """(path, [(name, type, has a default, keyword only)]) of every aten schema that has a public name."""
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if not schema.name.startswith("aten::") or _SKIPPED.search(name) or not schema.arguments:
            continue
        if any(a.is_out or (str(a.type) not in _TYPES and not a.has_default_value()) for a in schema.arguments):
            continue
        module, short = next(((m, name[len(m) + 1 :]) for m in ("special", "linalg", "fft") if name.startswith(m + "_")), ("", name))
        path = f"T.{module}.{short}" if module else f"T.{short}"
        first = schema.arguments[0]
        if module and not hasattr(getattr(torch, module), short):
            continue
        if not module and not hasattr(torch, short):
            if not inspect.isfunction(getattr(F, short, print)) and hasattr(F, short):
                path = f"F.{short}"
            elif hasattr(torch.Tensor, short) and str(first.type) == "Tensor":
                path = f".{short}"
            else:
                continue
        yield path, [("input" if a.name == "self" else a.name, "dtype" if a.name == "dtype" else _TYPES.get(str(a.type), ""),
                      a.has_default_value(), a.kwarg_only) for a in schema.arguments]  # fmt: skip


def _of_functional() -> Iterator[tuple[str, list[tuple[str, str, bool, bool]]]]:
    """As `_of_schemas`, for torch.nn.functional. The type of a parameter without an annotation comes from its default."""
    for name in sorted(vars(F)):
        fn = getattr(F, name)
        if _SKIPPED.search(name) or not callable(fn) or not hasattr(fn, "__module__") or inspect.isclass(fn):
            continue
        try:
            parameters = inspect.signature(fn).parameters.values()
        except (ValueError, TypeError):
            continue
        if (fn.__module__ or "").startswith("torch.nn.functional") or fn.__module__ == "torch._jit_internal":
            yield f"F.{name}", [(p.name, _kind(p), p.default is not p.empty, False) for p in parameters
                                if p.kind is p.POSITIONAL_OR_KEYWORD]  # fmt: skip


_ANNOTATED = (("Tensor", "tensor"), ("bool", "bool"), ("BroadcastingList", "ints"), ("int", "int"), ("float", "number"), ("str", "str"))


def _kind(p: inspect.Parameter) -> str:
    text = str(p.annotation)
    optional = "?" if "None" in text or "Optional" in text else ""
    for part, kind in _ANNOTATED:
        if part in text:
            return kind + optional
    return {bool: "bool", int: "int", float: "number", str: "str"}.get(type(p.default), "")


def _tensor(name: str, shape: str, code: str, position: int) -> list[str]:
    """Expressions to try for the tensor parameter `name`."""
    seed = f", seed={1 + 0.3 * position:g}" if position else ""
    plain = f"t('{code}', {shape}{seed})" if shape else f"t('{code}'{seed})"
    ints = f"at(2, {shape})" if shape else "at(2, 1).reshape(())"
    if name in ("index", "indices", "target", "pivots", "LU_pivots", "offsets", "lengths"):
        return [ints, "at(2, 2)", "at(2, 3)", plain]
    if name in ("mask", "condition"):
        return [plain.replace(f"'{code}'", "'b1'")]
    if name in ("weight", "mat2", "other", "vec", "vec2", "tau", "B", "batch2", "bias", "running_mean", "running_var", "tensor2"):
        return [plain, "t('f4', 3)", "t('f4', 4)", "t('f4', 4, 3)", "t('f4', 4, 3, 2)", "t('f4', 4, 3, 2, 2)", "t('f4', 3, 3, 2, 2)"]
    return [plain]


def _number(name: str, kind: str) -> list[str]:
    if kind.startswith("bool"):
        return ["False"]
    if kind.startswith("str"):
        return ["'mean'", "'sum'", "'constant'", "'L'", "'reduced'", "'amax'"]
    if kind.startswith("ints"):
        return ["[0]", "[1, 1]", "[2, 2]", "[3, 4]", "[4, 3]", "[2]", "[1, 1, 1]", "[0, 1]", "[6]"]
    if kind.startswith("number"):
        return ["0.5"]
    of_name = {"dim0": ["0"], "dim1": ["1"], "dim": ["0", "1"], "source": ["0"], "destination": ["1"], "k": ["1", "2"]}
    return of_name.get(name, ["1", "2", "0", "3"])


class _Slow(Exception):
    pass


def _stop(*_: Any) -> None:
    raise _Slow


def takes(call: str) -> bool:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        result = eval(call, names(torch))  # noqa: S307 - expressions made here
        return isinstance(result, (torch.Tensor, tuple, list))
    except Exception:  # noqa: BLE001 - the arguments do not fit
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def text_of(path: str, args: list[tuple[str, str]], keywords: frozenset[str]) -> str:
    """Text of the call. A path that begins with a dot is a method of the first argument."""
    parts = [f"{name}={value}" if name in keywords else value for name, value in args]
    if path.startswith("."):
        return f"{parts[0]}{path}({', '.join(parts[1:])})"
    return f"{path}({', '.join(parts)})"


def _bases(path: str, params: list[tuple[str, str, bool, bool]]) -> list[list[tuple[str, str]]]:
    """Up to two lists of (name, expression), of different shapes, that torch takes for the parameters without default."""
    needed = [p for p in params if not p[2]]
    if any(kind in ("", "dtype") for _, kind, _, _ in needed) or not needed:
        return []
    keywords = frozenset(p[0] for p in needed if p[3])
    found: list[list[tuple[str, str]]] = []
    for shape, code in itertools.chain(((s, "f4") for s in SHAPES), (("3, 4", "i8"), ("3, 4", "b1"), ("3, 4", "c8"), ("4", "i8"))):
        if (found and code != "f4") or len(found) == 2:
            break
        choices = []
        for i, (name, kind, _, _) in enumerate(needed):
            if kind.startswith("tensors"):
                choices.append([f"[{_tensor('', shape, code, 0)[0]}, {_tensor('', shape, code, 1)[0]}]"])
            else:
                choices.append(_tensor(name, shape, code, i) if kind.startswith("tensor") else _number(name, kind))
        for values in itertools.islice(itertools.product(*choices), 40):
            args = [(p[0], v) for p, v in zip(needed, values, strict=True)]
            if takes(text_of(path, args, keywords)):
                found.append(args)
                break
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _stop)
    records, seen = [], set()
    for path, params in itertools.chain(_of_schemas(), _of_functional()):
        key = json.dumps([path, params])
        if key in seen:
            continue
        seen.add(key)
        bases = _bases(path, params)
        if bases:
            records.append({"path": path, "params": [p for p in params if p[1]], "bases": bases})
    records.sort(key=lambda r: json.dumps(r))
    (HERE / "torch_signatures.json.gz").write_bytes(gzip.compress(json.dumps(records, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"torch {torch.__version__}: {len(records)} signatures of {len({r['path'] for r in records})} functions")


if __name__ == "__main__":
    main()
