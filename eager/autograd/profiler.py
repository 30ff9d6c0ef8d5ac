"""A simple profiler: the time of every op call and of every named region, in this thread.

It records ops at the point where they run, below autograd, so that the ops of backward are included. The time of an op includes
the ops of its decomposition. Times are wall times on the CPU; work on the GPU counts as its launch.
"""
from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from dataclasses import field
from typing import Any

from eager.base.records import dataclass
from eager.dispatch.calls import Mode
from eager.optable.table import Op
from eager.tape.state import per_thread


@dataclass(slots=True)
class FunctionEvent:
    """One call: name, start and end in ns, time spent in calls within it, its depth, shapes of its tensors."""

    name: str
    start_ns: int
    end_ns: int = 0
    children_ns: int = 0
    depth: int = 0
    input_shapes: list[list[int]] = field(default_factory=list)
    in_backward: bool = False

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from begin to end."""
        return (self.end_ns - self.start_ns) / 1e3

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds outside of calls within it."""
        return self.cpu_time_total - self.children_ns / 1e3

    @property
    def key(self) -> str:
        return self.name


@dataclass(slots=True)
class FunctionEventAvg:
    """All calls of one name (and of one list of shapes, if grouped by them)."""

    key: str
    input_shapes: list[list[int]]
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: FunctionEvent) -> None:
        self.count += 1
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total


def _duration(us: float) -> str:
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"





class EventList(list[Any]):
    """Events or their averages, with a table of them."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False) -> str:  # fmt: skip
        """The events as text, most expensive first by `sort_by` (cpu_time, cpu_time_total, self_cpu_time_total, count).

        Raises AttributeError for another key.
        """
        rows = [e for e in self if not top_level_events_only or getattr(e, "depth", 0) == 0]
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        total = sum(e.self_cpu_time_total for e in self) or 1.0
        names = [e.key if len(e.key) <= max_name_column_width else e.key[: max_name_column_width - 3] + "..." for e in rows]
        width = max([len("Name"), *map(len, names)])
        titles = ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
        line = "  ".join(["-" * width, *("-" * 12 for _ in titles)])
        out = [header] if header else []
        out += [line, "  ".join([f"{'Name':>{width}}", *(f"{t:>12}" for t in titles)]), line]
        for e, name in list(zip(rows, names, strict=True))[: row_limit if row_limit >= 0 else None]:
            count = getattr(e, "count", 1)
            cells = (f"{100 * e.self_cpu_time_total / total:.2f}%", _duration(e.self_cpu_time_total),
                     f"{100 * e.cpu_time_total / total:.2f}%", _duration(e.cpu_time_total),
                     _duration(e.cpu_time_total / count), str(count))  # fmt: skip
            out.append("  ".join([f"{name:>{width}}", *(f"{c:>12}" for c in cells)]))
        return "\n".join([*out, line, f"Self CPU time total: {_duration(self.self_cpu_time_total)}", ""])

    @property
    def self_cpu_time_total(self) -> float:
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> EventList:
        """One entry per name. Raises NotImplementedError for grouping by stack."""
        if group_by_stack_n:
            raise NotImplementedError("key_averages: group_by_stack_n is not implemented")
        found: dict[tuple[str, str], FunctionEventAvg] = {}
        for e in self:
            key = (e.name, str(e.input_shapes) if group_by_input_shapes else "")
            found.setdefault(key, FunctionEventAvg(e.name, e.input_shapes if group_by_input_shapes else [])).add(e)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """All events as one entry."""
        total = FunctionEventAvg("Total", [])
        for e in self:
            total.add(e)
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace that chrome://tracing and Perfetto read."""
        entries = [{"ph": "X", "name": e.name, "pid": os.getpid(), "tid": 0, "ts": e.start_ns / 1e3, "dur": e.cpu_time_total,
                    "args": {"shapes": e.input_shapes}} for e in self]  # fmt: skip
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"traceEvents": entries}, f)

    def __str__(self) -> str:
        return self.table()


_running: list[profile] = []


class _Timer(Mode):
    """Times every op call beneath autograd."""

    def __init__(self, owner: profile) -> None:
        self._owner = owner

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        shapes = [list(t.shape) for t in op.tensors(args)] if self._owner.record_shapes else []
        event = self._owner._begin(f"aten::{op.name}", shapes)
        try:
            if op.decompose is not None and op.kernel is None:
                with self:  # the ops that it consists of are timed as well
                    return op.decompose(*args)
            return op(*args)
        finally:
            self._owner._end(event)


class profile:  # noqa: N801 - torch's name
    """Records the ops of a block: `with profile() as p: ...; print(p.key_averages().table())`.

    record_shapes: record the shapes of inputs. Raises: NotImplementedError for options that measure memory, stacks or FLOPs.
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False,
                 with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False, with_modules: bool = False,
                 use_kineto: bool = False, use_cpu: bool = True) -> None:  # fmt: skip
        asked = {"with_flops": with_flops, "profile_memory": profile_memory, "with_stack": with_stack, "with_modules": with_modules}
        for name, on in asked.items():
            if on:
                raise NotImplementedError(f"profile: {name}=True is not implemented")
        self.enabled, self.record_shapes = enabled, record_shapes
        self.function_events = EventList()
        self._open: list[FunctionEvent] = []
        self._timer = _Timer(self)

    def __enter__(self) -> profile:
        if self.enabled:
            if _running:
                raise RuntimeError("Profiler is already enabled on this thread")
            _running.append(self)
            self._timer.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._timer.__exit__()
            _running.remove(self)

    def _begin(self, name: str, shapes: list[list[int]]) -> FunctionEvent:
        event = FunctionEvent(name, 0, depth=len(self._open), input_shapes=shapes, in_backward=per_thread.running is not None)
        self._open.append(event)
        event.start_ns = time.perf_counter_ns()
        return event

    def _end(self, event: FunctionEvent) -> None:
        event.end_ns = time.perf_counter_ns()
        self._open.remove(event)
        if self._open:
            self._open[-1].children_ns += event.end_ns - event.start_ns
        self.function_events.append(event)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The calls by name; see `EventList.table`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **kwargs: Any) -> str:
        """Every call as text."""
        return self.function_events.table(sort_by, row_limit, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        self.function_events.export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return self.table()


class record_function:  # noqa: N801 - torch's name
    """A named region in the profile, as a block or a decorator; free where no profiler runs."""

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(args, str | None):
            raise RuntimeError(f"record_function: args must be str or None, not {type(args).__name__}")
        self.name = name
        self._event: tuple[profile, FunctionEvent] | None = None

    def __enter__(self) -> record_function:
        if _running:
            self._event = _running[-1], _running[-1]._begin(self.name, [])
        return self

    def __exit__(self, *exc: object) -> None:
        if self._event is not None:
            owner, event = self._event
            owner._end(event)
            self._event = None

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return fn(*args, **kwargs)

        return wrapper


class emit_nvtx:  # noqa: N801 - torch's name
    """A block whose ops are ranges for NVIDIA's profilers. Raises: NotImplementedError at the block, unless enabled=False."""

    _tool = "NVTX"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise NotImplementedError(f"{type(self).__name__}: ranges of {self._tool} are not implemented; "
                                      "allowed: autograd.profiler.profile, which times the ops itself")  # fmt: skip
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class emit_itt(emit_nvtx):  # noqa: N801 - torch's name
    """As emit_nvtx, for Intel's profilers."""

    _tool = "ITT"


def kineto_available() -> bool:
    """Whether torch's own tracing library is there. It is not: ops are timed by this module."""
    return False


__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function"]
