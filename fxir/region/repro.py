"""Scripts that reproduce a failure of a backend: `torch._dynamo.config.repro_after`.

Owns the conditions under which a script is written (`after_dynamo`, `after_aot`), its path and its text. A script rebuilds one
graph and its inputs and runs the graph under the backend (`fxir.region.repro_run`). At repro_level 1 and 2 a script is written
for a graph whose compilation or first run raises; at 3 for each graph; at 4 for a graph whose results differ from eager's.
"""

from __future__ import annotations

import datetime
import itertools
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import eager
from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import settings
from eager.base.logs import component
from eager.base.spec import DataDependentError, TensorSpec
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.printer import dotted_name, print_python
from fxir.region.data_dependent import CannotStage
from fxir.region.repro_run import AccuracyError, check_same, copied, outcome
from fxir.symbols.shapes import NeedsStatic, bound

__all__ = ["BACKEND_NAMES", "after_aot", "after_dynamo"]

Compile: TypeAlias = Callable[[], Callable[..., Any]]
BACKEND_NAMES: Final[dict[Any, str]] = {}  # compile_graph function -> the name of its backend
_LOG: Final = component("aot")
_serial = itertools.count()
_VARIABLES: Final = ("TORCH", "FRAMEJIT")
_NOT_REPEATED: Final = ("TORCHDYNAMO_REPRO_AFTER", "TORCHDYNAMO_REPRO_LEVEL", "TORCH_LOGS", "FRAMEJIT_TEST")


def after_dynamo(gm: GraphModule, args: Sequence[Any], compile_: Compile, backend: Any, options: CompileOptions) -> Callable[..., Any]:
    """The result of compile_(), checked on copies of the real inputs `args` at repro_level.

    Raises: errors of compile_ or of the compiled function, after a script is written; AccuracyError at level 4.
    """
    debug = settings.current().debug

    def checked() -> Callable[..., Any]:
        compiled = compile_()
        found = outcome(compiled, args, forward_only=debug.repro_forward_only)
        if debug.repro_level >= 4:
            wanted = outcome(gm.forward, args, forward_only=debug.repro_forward_only)
            check_same(found, wanted, debug.repro_tolerance, ignore_non_floats=debug.repro_ignore_non_fp)
        return compiled

    return _guarded(checked, gm, args, backend, options, "captured")


def after_aot(graph: Graph, kind: GraphKind, options: CompileOptions,
              compile_graph: Callable[[Graph, GraphKind, CompileOptions], Callable[..., Any]]) -> Callable[..., Any]:  # fmt: skip
    """compile_graph's result, whose first run is checked at repro_level. The script of a failed compilation has random inputs."""
    gm = GraphModule(graph.root, graph, f"{kind.value}_graph")
    backend = BACKEND_NAMES.get(compile_graph, compile_graph)
    compiled = _guarded(lambda: compile_graph(graph, kind, options), gm, _specs(graph), backend, options, kind.value)
    is_checked = False

    def run(*args: Any) -> Any:
        nonlocal is_checked
        if is_checked:
            return compiled(*args)
        is_checked = True
        debug = settings.current().debug
        kept = copied(args)

        def first() -> Any:
            results = compiled(*args)
            if debug.repro_level >= 4:
                before = _native.set_grad_enabled(False)
                try:
                    check_same(outcome(compiled, kept), outcome(gm.forward, kept), debug.repro_tolerance,
                               ignore_non_floats=debug.repro_ignore_non_fp)  # fmt: skip
                finally:
                    _native.set_grad_enabled(before)
            return results

        return _guarded(first, gm, kept, backend, options, kind.value)

    return run


def _guarded(call: Callable[[], Any], gm: GraphModule, args: Sequence[Any], backend: Any, options: CompileOptions, kind: str) -> Any:
    """call(); if it raises, a script is written and the error is raised again."""
    level = settings.current().debug.repro_level
    is_first_run = not any(isinstance(x, TensorSpec) for x in args)
    if level == 3 and is_first_run:
        _write_or_warn(gm, args, backend, options, f"{kind} graph (repro_level 3 writes each graph)", False)
    try:
        return call()
    except (NeedsStatic, CannotStage, DataDependentError):  # the capture starts again, or breaks the graph
        raise
    except Exception as error:
        is_wrong = isinstance(error, AccuracyError)
        if is_wrong or level < 3 or (level == 3 and not is_first_run):
            event = "gives results that differ from eager's" if is_wrong else f"raised {type(error).__name__}"
            path = _write_or_warn(gm, args, backend, options, f"the compiled {kind} graph {event}", is_wrong)
            if path is not None:
                error.__dict__["minifier_path"] = str(path)  # torch's attribute
        raise


def _write_or_warn(gm: GraphModule, args: Sequence[Any], backend: Any, options: CompileOptions, event: str, accuracy: bool) -> Path | None:
    try:
        path = _write(gm, args, backend, options, event, accuracy)
    except Exception as error:  # noqa: BLE001 - a script that cannot be written must not hide the failure
        _LOG.warning(f"compile: {event}; no script was written: {type(error).__name__}: {error}")
        return None
    _LOG.warning(f"compile: {event}; to repeat it, run: python {path}")
    return path


# -- the files ---------------------------------------------------------------------------------------------------
def _specs(graph: Graph) -> list[Any]:
    """A spec for each placeholder; for a symbolic number, its value."""
    numbers = {source.input: s for s, source in graph.symbols.items() if source.is_number}
    hints = graph.shapes.hints if graph.shapes is not None else {}
    return [hints[numbers[i]] if i in numbers else _hinted(n.info.spec, hints) for i, n in enumerate(graph.placeholders)]


def _hinted(spec: Any, hints: Any) -> Any:
    return bound(spec, hints) if hints else spec


def _folder() -> Path:
    """A new folder, named as torch names its folders."""
    now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S_%f")
    folder = settings.current().debug.dir.absolute() / f"run_{now}-pid_{os.getpid()}-{next(_serial)}" / "minifier"
    folder.mkdir(parents=True)
    return folder


def _write(gm: GraphModule, args: Sequence[Any], backend: Any, options: CompileOptions, event: str, accuracy: bool) -> Path:
    """Write the script and its values. Raises: OSError; TypeError for an input that is neither a tensor nor a number."""
    code = print_python(gm.graph, annotate=True, attributes=True)
    header, _, body = code.source.rpartition("def forward(")
    constants = {str(n.target): gm.root[str(n.target)] for n in gm.graph.nodes if n.op in ("get_attr", "call_module")}
    loads, saved = _load_args(gm, args)
    folder = _folder()
    if saved is not None:
        eager.save(saved, folder / "inputs.pt")
    if constants:
        eager.save(constants, folder / "constants.pt")
    missing = "".join(f"{name} = None  # this value cannot be imported: define it here\n" for name in code.globals)
    path = folder / "repro.py"
    setup = "".join(f"        self.{name} = values[{name!r}]\n" for name in constants)
    if constants:
        setup = f"        values = torch.load(HERE / \"constants.pt\", weights_only=False)\n{setup}"
    source, imports = _backend(backend)
    path.write_text(_SCRIPT.format(
        event=event, environment=settings.environment(_VARIABLES, _NOT_REPEATED), paths=_paths(),
        imports="\n".join(filter(None, (imports, header.strip()))), missing=missing, setup=setup,
        forward=textwrap.indent(f"def forward({body}".rstrip(), "    "),
        loads=textwrap.indent(loads, "    "), backend=source, options=_compile_options(gm, options, accuracy)))  # fmt: skip
    return path


_SCRIPT: Final = '''"""Repeats a failure of a compiler backend: {event}.

`python repro.py` runs the graph below under the backend, on the inputs in inputs.pt; `--help` lists the options. Without that
file, or with --random, the inputs have random values.
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.update({environment})
sys.path += [p for p in {paths} if p not in sys.path]

import eager as torch
from fxir.region.repro_run import Inputs, run
{imports}

{missing}
class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
{setup}
{forward}


def load_args(inputs: Inputs) -> None:
{loads}


BACKEND = {backend}

if __name__ == "__main__":
    run(Repro(), load_args, backend=BACKEND, values=HERE / "inputs.pt"{options})
'''


def _load_args(gm: GraphModule, args: Sequence[Any]) -> tuple[str, list[Any] | None]:
    """Statements that create the inputs, and their values; None if only specs are known."""
    lines: list[str] = []
    storages: dict[int, str] = {}
    for name, x in zip([n.name for n in gm.graph.placeholders], args, strict=True):
        if isinstance(x, int | float):
            lines.append(f"inputs.number({x!r})  # {name}")
            continue
        if not isinstance(x, Tensor | TensorSpec):
            raise TypeError(f"{name} is a {type(x).__name__}, not a tensor or a number")
        facts = ""
        if isinstance(x, Tensor):
            storage = x.detach().untyped_storage()
            key, size, offset, strides = id(storage.root), storage.nbytes(), x.storage_offset(), x.stride()
            facts += f", offset={offset}" if offset else ""
            facts += ", is_parameter=True" if isinstance(x, eager.nn.Parameter) else ""
            facts += f", requires_grad=True{'' if x.is_leaf else ', is_leaf=False'}" if x.requires_grad else ""
        else:
            key, strides = id(x), tuple(x.strides)
            size = x.dtype.itemsize * (1 + sum((n - 1) * abs(s) for n, s in zip(x.shape, strides, strict=True))) if 0 not in x.shape else 0
        if key not in storages:
            storages[key] = f"storage{len(storages)}"
            device = "" if str(x.device) == "cpu" else f", device={str(x.device)!r}"
            lines.append(f"{storages[key]} = inputs.storage({size}{device})")
        lines.append(f"inputs.tensor({storages[key]}, {tuple(x.shape)}, {tuple(strides)}, {x.dtype}{facts})  # {name}")
    saved = [x.detach() if isinstance(x, Tensor) else x for x in args]
    return "\n".join(lines) or "pass", None if any(isinstance(x, TensorSpec) for x in args) else saved


def _backend(backend: Any) -> tuple[str, str]:
    """The expression for a backend, and the import that it needs. "None" for a function without an importable name."""
    if isinstance(backend, str):
        return repr(backend), ""
    where = dotted_name(backend)
    if where is None or where[0] == "__main__":
        return f"None  # {getattr(backend, '__qualname__', backend)!s} is a function of the program: import it, or define it here", ""
    return f"{where[0]}.{where[1]}", f"import {where[0]}"


def _compile_options(gm: GraphModule, options: CompileOptions, accuracy: bool) -> str:
    """The arguments of `run` that differ from the defaults."""
    debug = settings.current().debug
    given: dict[str, Any] = {
        "accuracy": accuracy, "forward_only": debug.repro_forward_only, "ignore_non_floats": debug.repro_ignore_non_fp,
        "tolerance": debug.repro_tolerance if accuracy else None, "dynamic": True if gm.graph.symbols else options.dynamic,
        "mode": options.mode if options.mode != "default" else None, "options": dict(options.options) or None}  # fmt: skip
    if options.dynamic is not False:
        given = {name: value for name, value in given.items() if value is not False}
    return "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)


def _paths() -> str:
    """The folders that this program imports from, except the folders of the installation."""
    return repr([str(Path(p).absolute()) for p in sys.path if not Path(p).absolute().is_relative_to(sys.base_prefix)])
