"""The resolved share of a census of torch names, weighted by the number of projects that use each name.

A census is a table of tab-separated columns api, kind, repos, files, calls: `torch.nn.Linear` is a name,
`.backward` a method of some object. A name counts if it resolves through the alias as a user's import
does; a method counts if a class whose objects users hold has it. An unresolved name whose reason is in
the table of absent names is listed with its weight under that reason.
"""
from __future__ import annotations

import csv
import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from eager.base.records import dataclass
from eager.startup import absent_names


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a census: a name, and the number of projects that use it."""

    api: str
    repos: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The result of a census. Each row is in exactly one of the three groups."""

    resolved: tuple[Row, ...]
    missing: tuple[Row, ...]
    excluded: dict[str, tuple[Row, ...]]

    @property
    def share(self) -> float:
        """The resolved fraction of the counted names, weighted by projects; 1 for an empty census."""
        good, bad = (sum(r.repos for r in rows) for rows in (self.resolved, self.missing))
        return good / (good + bad) if good + bad else 1.0


def read_census(path: Path) -> list[Row]:
    """The rows of a census file; a name listed under several kinds counts for each kind.

    Raises: ValueError for a file without the columns `api` and `repos`.
    """
    with path.open(newline="") as f:
        table = csv.DictReader(f, delimiter="\t")
        if not {"api", "repos"} <= set(table.fieldnames or ()):
            raise ValueError(f"census {path}: columns {table.fieldnames}; needed are 'api' and 'repos', tab-separated")
        return [Row(line["api"], int(line["repos"])) for line in table]


def reason_to_exclude(api: str) -> str | None:
    """Why an unresolved name is excluded from the count; None for a name that counts as missing."""
    name = f"torch.Tensor{api}" if api.startswith(".") else api if api.startswith("torch.") else f"torch.{api}"
    return absent_names.reason(name)


# Modules with the classes on whose objects users call methods.
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
    """Whether `torch.a.b` resolves as `import torch.a` plus attributes; `Tensor.x` is an attribute of torch.Tensor."""
    parts = (api if api == "torch" or api.startswith("torch.") else f"torch.{api}").split(".")
    found: object = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError):  # a package may import a submodule on first use
            try:
                found = importlib.import_module(".".join(parts[:i]))
            except ImportError:  # missing, or dependent on a missing optional package
                return False
    return True


def measure(rows: Iterable[Row]) -> Coverage:
    """Look up every row. The alias must be installed."""
    methods = {name for cls in set(_classes()) for name in dir(cls)}
    resolved, missing = [], []
    excluded: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.api[1:] in methods if row.api.startswith(".") else resolves(row.api):
            resolved.append(row)
        elif reason := reason_to_exclude(row.api):
            excluded[reason].append(row)
        else:
            missing.append(row)
    return Coverage(tuple(resolved), tuple(missing), {reason: tuple(rows) for reason, rows in sorted(excluded.items())})


def _weight(rows: Sequence[Row]) -> int:
    return sum(r.repos for r in rows)


def report(coverage: Coverage) -> str:
    """The figures, the excluded names, and the missing names by weight."""
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
