"""`python -m tests.zoo.cuda_plans FILE`: the CUDA plans of the models of `tests/zoo`, forward and backward, pickled into FILE.

Owns the capture of a model's graphs for `benchmarks.plans`. It runs with FRAMEJIT_EMULATE_CUDA=1, so that the models' tensors
are on a CUDA device: each graph is lowered, then runs op by op.
"""

from __future__ import annotations

import argparse
import pickle
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import eager as torch
from benchmarks.plans import Planned, planned
from eager import as_torch
from eager.base import settings
from fxir.backends import register_backend
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph, devices_of
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import aot_compile, interpret
from inductor.base.options import PASSES
from inductor.driver import device_parts
from inductor.driver.backend import KEPT

as_torch.install()
from tests.zoo import runner  # noqa: E402 - models are written for torch
from tests.zoo.case import Case  # noqa: E402

# Its code makes a tensor on the CPU, also under another default device.
ON_THE_CPU: Final = frozenset({"tacotron"})
CASES: Final = {name: case for name, case in runner.cases().items() if name not in ON_THE_CPU}
as_torch.uninstall()

__all__ = ["CASES", "plans_of"]


def plans_of(name: str, case: Case, capabilities: Sequence[int]) -> list[Planned]:
    """The plans of the graphs on CUDA of a training step and of an evaluation of a model."""
    found: list[Planned] = []

    def keep(graph: Graph, kind: GraphKind, options: CompileOptions) -> Callable[..., Any]:
        if any(d.type == "cuda" for d in devices_of(graph)):
            found.extend(planned("zoo", f"{name}, {kind.value}", graph, capabilities))
        return interpret(graph, kind, options)

    def each_part(graph: Graph, kind: GraphKind, options: CompileOptions) -> Callable[..., Any]:
        if len(devices_of(graph)) > 1 and device_parts.needs_parts(graph):
            return device_parts.compile_parts(graph, lambda part: keep(part, kind, options))
        return keep(graph, kind, options)

    def lowered(gm: GraphModule, example_inputs: Sequence[Any], options: CompileOptions) -> Callable[..., Any]:
        return aot_compile(gm, example_inputs, each_part, options, KEPT, PASSES)

    register_backend("plans", lowered, writes_at_end=True)
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings(), settings.scope(capture_suppress_errors=False):
            warnings.simplefilter("ignore")  # deprecations that torch has too
            runner.run(name, replace(case, build=partial(_built, case)), partial(torch.compile, backend="plans"), device="cuda", steps=1)
    except Exception as error:  # noqa: BLE001 - a model that does not run is a line of the table
        found.append(Planned.failed("zoo", name, 0, error))
    return found


def _built(case: Case) -> Any:
    """The model, whose tensors without a name are on the device too."""
    with torch.device("cuda"):
        return case.build()


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo.cuda_plans", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("-k", metavar="TEXT", dest="text", help="only the models whose name contains TEXT")
    parser.add_argument("--sm", type=int, nargs="+", required=True)
    args = parser.parse_args(None if arguments is None else list(arguments))
    chosen = {n: case for n, case in CASES.items() if args.text is None or args.text in n}
    args.file.write_bytes(pickle.dumps([p for n, case in chosen.items() for p in plans_of(n, case, args.sm)]))


if __name__ == "__main__":
    main()
