"""How much of a census of torch names this project answers to, weighted by the number of projects that use each.

A census is a table of tab-separated columns api, kind, repos, files, calls: `torch.nn.Linear` is a name,
`.backward` a method of some object. A name counts if it resolves through the alias as a user's import would
resolve it; a method counts if one of the classes that users hold objects of has it. What stands outside the
project's scope is not counted, but listed with its weight (`EXCLUDED`).
"""
from __future__ import annotations

import csv
import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Why a name is left out of the count -> prefixes (a trailing dot: only what is below) that it applies to.
EXCLUDED: dict[str, tuple[str, ...]] = {
    "CUDA and other devices": (
        "torch.cuda", "torch.backends.cuda", "torch.backends.cudnn", "torch.xpu", "torch.mps", "torch.accelerator", "torch.Stream",
        "torch.Event", ".cuda", "torch.backends.mps", "torch.npu", "torch.mtia", "torch.hpu",
    ),
    "distributed": (
        "torch.distributed", "torch.nn.parallel", "torch.utils.data.distributed", "torch.utils.data.DistributedSampler",
        "torch.nn.SyncBatchNorm", "torch.distributed_c10d", "torch.futures", "torch.multiprocessing.spawn",
    ),
    "hub": ("torch.hub", "torch.utils.model_zoo"),
    "jit": ("torch.jit", "torch.utils.jit", "torch.utils.mobile_optimizer", "torch._jit_internal"),
    "onnx": ("torch.onnx",),
    "visualisation and profiling": (
        "torch.utils.tensorboard", "torch.profiler", "torch.autograd.profiler", "torch.utils.viz", "torch.utils.benchmark",
        "torch.utils.flop_counter",
    ),
    "quantisation, sparse and nested layouts": (
        "torch.quantization", "torch.ao", "torch.qint8", "torch.qint32", "torch.quint8", "torch.quint4x2", "torch.quantize", "torch.sparse",
        "torch.nested", "torch.spmm",
        "torch._ops.ops.quantized", "torch.ops.quantized", ".to_sparse", ".sparse_mask", ".coalesce", "torch.backends.quantized",
        ".dequantize", ".int_repr", ".q_scale", ".q_zero_point", ".to_dense",
    ),
    "C++ extensions": ("torch.utils.cpp_extension", "torch.classes", "torch.ops.load_library"),
    "torch's internals": (
        "torch._C", "torch._guards", "torch._subclasses", "torch._functorch", "torch._ops", "torch._logging", "torch._inductor.",
        "torch._dynamo.", "torch.testing._internal", "torch.fx.experimental", "torch.fx.passes", "torch._prims", "torch._refs",
        "torch._decomp", "torch._higher_order_ops", "torch._export", "torch._library", "torch._utils_internal", "torch._utils",
        "torch._six", "torch.utils._sympy", "torch.utils._python_dispatch", "torch.utils._debug_mode", "torch.utils._stats",
        "torch.utils._triton", "torch.utils._ordered_set", "torch.utils._device", "torch.utils._mode_utils", "torch._lazy",
        "torch._custom_ops", "torch._namedtensor_internals", "torch._meta_registrations", "torch._environment", "torch.ops.",
        "torch.utils._config_module", "torch.utils._thunk", "torch._strobelight", "torch._numpy", "torch._native", "torch._opaque_base",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a census: a name, and how many projects use it."""

    api: str
    repos: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a census came to. Each row stands in exactly one of the three groups."""

    resolved: tuple[Row, ...]
    missing: tuple[Row, ...]
    excluded: dict[str, tuple[Row, ...]]

    @property
    def share(self) -> float:
        """Resolved share of what counts, weighted by projects; 1 for an empty census."""
        good, bad = (sum(r.repos for r in rows) for rows in (self.resolved, self.missing))
        return good / (good + bad) if good + bad else 1.0


def read_census(path: Path) -> list[Row]:
    """The rows of a census file; a name that stands in it under several kinds counts for each.

    Raises: ValueError for a file without the columns `api` and `repos`.
    """
    with path.open(newline="") as f:
        table = csv.DictReader(f, delimiter="\t")
        if not {"api", "repos"} <= set(table.fieldnames or ()):
            raise ValueError(f"census {path}: columns {table.fieldnames}; needed are 'api' and 'repos', tab-separated")
        return [Row(line["api"], int(line["repos"])) for line in table]


def reason_to_exclude(api: str) -> str | None:
    """Why a name does not count, or None where it does."""
    for reason, prefixes in EXCLUDED.items():
        for prefix in prefixes:
            if api == prefix or api.startswith(prefix.removesuffix(".") + "."):
                return reason
    return None


# Modules whose classes' objects users call methods of.
_METHOD_OWNERS = ("torch", "torch.nn", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.distributions",
                  "torch.return_types", "torch.autograd.function", "torch.storage", "torch.serialization", "torch.nn.utils.rnn",
                  "torch.amp", "torch.fx")  # fmt: skip


def _classes() -> Iterator[type]:
    for name in _METHOD_OWNERS:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        yield from (value for value in vars(module).values() if inspect.isclass(value))


def resolves(api: str) -> bool:
    """Whether `torch.a.b` is found, as `import torch.a` and then attributes find it; `Tensor.x` is torch's."""
    parts = (api if api == "torch" or api.startswith("torch.") else f"torch.{api}").split(".")
    found: object = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError):  # a package may import a part on first use
            try:
                found = importlib.import_module(".".join(parts[:i]))
            except ImportError:  # not there, or there for an optional package that is not
                return False
    return True


def measure(rows: Iterable[Row]) -> Coverage:
    """Look up every row. The alias must be installed."""
    methods = {name for cls in set(_classes()) for name in dir(cls)}
    resolved, missing = [], []
    excluded: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        reason = reason_to_exclude(row.api)
        if reason is not None:
            excluded[reason].append(row)
        elif row.api[1:] in methods if row.api.startswith(".") else resolves(row.api):
            resolved.append(row)
        else:
            missing.append(row)
    return Coverage(tuple(resolved), tuple(missing), {reason: tuple(excluded[reason]) for reason in EXCLUDED})


def _weight(rows: Sequence[Row]) -> int:
    return sum(r.repos for r in rows)


def report(coverage: Coverage) -> str:
    """The figures, what was left out, and what is missing by weight."""
    counted = (*coverage.resolved, *coverage.missing)
    lines = [
        f"{coverage.share:.1%} of the census resolves, weighted by projects: {_weight(coverage.resolved)} of {_weight(counted)} "
        f"({len(coverage.resolved)} of {len(counted)} names)",
        "", "left out (names, weight):",
    ]  # fmt: skip
    lines += [f"  {reason}: {len(rows)}, {_weight(rows)}" for reason, rows in coverage.excluded.items()]
    lines += ["", "missing, by weight:"]
    for row in sorted(coverage.missing, key=lambda r: (-r.repos, r.api)):
        lines.append(f"  {row.repos:4d}  {row.api}")
    return "\n".join(lines)
