"""The CUDA plans whose kernels `python -m benchmarks triton` compiles: of the benchmark programs, the op table, and the zoo's models.

Owns where kernels come from. Nothing is compiled or run here; inputs are fake tensors. The zoo's models run op by op
(`tests.zoo.cuda_plans`).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import eager as torch
from benchmarks.cuda_graphs import PROGRAMS
from eager.base.spec import DataDependentError, TensorSpec, fake, spec_of
from eager.optable.declaration import Declaration
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from fxir.ir.graph import Graph
from fxir.trace.trace import trace
from inductor.base.target import SM_80, SM_86, SM_90, SM_100, SM_120
from inductor.driver.backend import KEPT
from inductor.driver.cuda import Launch, lower_to_cuda
from inductor.triton.kernel import TritonKernel

__all__ = ["COUNTED", "SOURCES", "TARGETS", "Planned", "planned", "tensors_in", "with_tensors"]

TARGETS: Final = {80: SM_80, 86: SM_86, 90: SM_90, 100: SM_100, 120: SM_120}
COUNTED: Final = (80, 90)  # targets of a run that names none
_OP_DTYPES: Final = (torch.float32, torch.bfloat16)
_LARGER: Final = 96  # times a sample's sizes: rows and columns then take several tiles
_LARGE_SAMPLES: Final = 3  # of an op and dtype


@dataclass(frozen=True, slots=True)
class Planned:
    """The kernels of one graph, each with its title.

    capability: of the target; 90 means sm_90. error: why the graph has no plan; "" if it has one.
    """

    group: str
    name: str
    capability: int
    kernels: tuple[tuple[TritonKernel, str], ...] = ()
    error: str = ""

    @classmethod
    def failed(cls, group: str, name: str, capability: int, error: Exception) -> Planned:
        return cls(group, name, capability, (), described(error))


def described(error: Exception) -> str:
    """The class of an error and the first line of its message."""
    text = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {text[0]}"


def planned(group: str, name: str, graph: Graph, capabilities: Sequence[int]) -> Iterator[Planned]:
    """The kernels of a graph for each target."""
    for capability in capabilities:
        try:
            plan = lower_to_cuda(graph, TARGETS[capability])
        except Exception as error:  # noqa: BLE001 - a program without a plan is a line of the table
            yield Planned.failed(group, name, capability, error)
            continue
        titles = {s.kernel: s.title for s in plan.steps if isinstance(s, Launch)}
        yield Planned(group, name, capability, tuple((kernel, titles[k]) for k, kernel in enumerate(plan.kernels)))


def of_programs(text: str | None, capabilities: Sequence[int]) -> Iterator[Planned]:
    """The benchmark programs whose name contains `text`, or the programs of that group."""
    for program in PROGRAMS:
        if text is None or text in program.name or text == program.group:
            yield from planned(program.group, program.name, program.graph(), capabilities)


def of_ops(text: str | None, capabilities: Sequence[int]) -> Iterator[Planned]:
    """Every op of the table on every sample, in float32 and bfloat16, if its name contains `text`."""
    for title, op, args in _calls(text, None):
        yield from _planned_call("ops", title, op, args, capabilities)


def of_large_ops(text: str | None, capabilities: Sequence[int]) -> Iterator[Planned]:
    """Every op of the table on CUDA tensors of many elements: its samples with each size from 2 multiplied by `_LARGER`.

    A sample whose other arguments do not allow such sizes is left out.
    """
    for title, op, args in _calls(text, _LARGE_SAMPLES):
        yield from _planned_call("large", title, op, with_tensors(args, map(_enlarged, tensors_in(args))), capabilities)


def _calls(text: str | None, most: int | None) -> Iterator[tuple[str, Declaration, tuple[Any, ...]]]:
    """(title, op, arguments) of at most `most` samples of each op and dtype, of ops whose names contain `text`."""
    for name, op in OPS.items():
        if (text is None or text in name) and not (op.is_custom or op.mutates or op.samples is None or op.kind is Kind.EFFECT):
            for of in _OP_DTYPES:
                for number, args in enumerate(islice(_samples(name, of), most)):
                    yield f"{name}-{number} {of.name}", op, args


def _planned_call(group: str, title: str, op: Declaration, args: tuple[Any, ...], capabilities: Sequence[int]) -> Iterator[Planned]:
    """The kernels of one call for each target, none if it has no graph."""
    graph = _traced(op, args)
    if graph is not None:
        yield from planned(group, title, graph, capabilities)


def _enlarged(t: torch.Tensor) -> torch.Tensor:
    """A fake tensor like `t` whose sizes from 2 are multiplied, without memory."""
    return fake(TensorSpec.contiguous([n * _LARGER if n > 1 else n for n in t.shape], t.dtype))  # type: ignore[no-any-return]


def _samples(name: str, of: Any) -> list[tuple[Any, ...]]:
    try:
        return list(samples_of(name, of))
    except RuntimeError:  # the samples of some ops exist in some dtypes only
        return []


def _traced(op: Declaration, args: tuple[Any, ...]) -> Graph | None:
    """The graph of one call on CUDA tensors; None if the op runs eagerly, or has no kernels of these dtypes."""
    tensors = list(tensors_in(args))
    if any(t.dtype.is_complex for t in tensors):
        return None
    try:
        return trace(lambda *xs: op(*with_tensors(args, iter(xs))), [_on_cuda(t) for t in tensors], KEPT)
    except (NotImplementedError, RuntimeError, ValueError, IndexError, TypeError, DataDependentError):
        return None


def _on_cuda(t: Any) -> Any:
    return fake(replace(spec_of(t), device=torch.device("cuda")))


def tensors_in(args: Any) -> Iterator[Any]:
    """The tensors among nested arguments, in order."""
    if isinstance(args, torch.Tensor):
        yield args
    elif isinstance(args, tuple | list):
        for a in args:
            yield from tensors_in(a)


def with_tensors(args: Any, given: Iterator[Any]) -> Any:
    """Nested arguments with other tensors: `given`, in the order of `tensors_in`."""
    if isinstance(args, torch.Tensor):
        return next(given)
    return type(args)(with_tensors(a, given) for a in args) if isinstance(args, tuple | list) else args


def of_zoo(text: str | None, capabilities: Sequence[int]) -> Iterator[Planned]:
    """A training step and an evaluation of each model of the zoo whose name contains `text`.

    Another process captures them, where CUDA is emulated. Raises: subprocess.CalledProcessError if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plans"
        only = () if text is None else ("-k", text)
        command = [sys.executable, "-m", "tests.zoo.cuda_plans", str(file), *only, "--sm", *map(str, capabilities)]
        subprocess.run(command, env={**os.environ, "FRAMEJIT_EMULATE_CUDA": "1"}, check=True)
        yield from pickle.loads(file.read_bytes())


SOURCES: Final[dict[str, Callable[[str | None, Sequence[int]], Iterator[Planned]]]] = {
    "programs": of_programs, "ops": of_ops, "large": of_large_ops, "zoo": of_zoo,
}  # fmt: skip
