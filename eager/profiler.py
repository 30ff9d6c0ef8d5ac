"""torch.profiler: the profiler of `eager.autograd.profiler`, controlled by a schedule of training steps.

It times ops on the CPU. A request for other measurements (memory, stacks, flops, GPU kernels) raises or warns.
"""
from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from eager import cuda
from eager.autograd.profiler import EventList, FunctionEventAvg, kineto_available, record_function
from eager.autograd.profiler import profile as _Recorder  # noqa: N813 - a class under torch's lower-case name


class ProfilerActivity(Enum):
    """The kinds of activity to profile; only the CPU is supported."""

    CPU = "CPU"
    XPU = "XPU"
    MTIA = "MTIA"
    CUDA = "CUDA"
    HPU = "HPU"
    PrivateUse1 = "PrivateUse1"


class ProfilerAction(Enum):
    """The action of the profiler during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """The action of each step: after `skip_first` steps, cycles of `wait`, `warmup` and `active` steps.

    repeat: number of cycles, 0 for no limit. skip_first_wait: a nonzero value omits the first cycle's wait.
    Raises: AssertionError for negative numbers or active=0.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[profile], None]:
    """An `on_trace_ready` callback that writes each trace to `dir_name`, with a file name that trace viewers recognise.

    Raises: NotImplementedError for use_gzip=True.
    """
    if use_gzip:
        raise NotImplementedError("tensorboard_trace_handler: use_gzip=True is not implemented")

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json"))

    return handler


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be profiled."""
    return {ProfilerActivity.CPU}


class profile:  # noqa: N801 - torch's name
    """Profiles a block, or the steps that `schedule` selects: call `step()` at the end of each step.

    on_trace_ready: called with the profiler after the last step of a cycle, or without a schedule after the block.
    Raises: NotImplementedError for unsupported measurements.
    """

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[[Any], Any] | None = None,
                 record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None, acc_events: bool = False,
                 use_cuda: bool | None = None) -> None:  # fmt: skip
        requested = set(activities) if activities is not None else {ProfilerActivity.CPU}
        if use_cuda or ProfilerActivity.CUDA in requested:
            warnings.warn("profile: GPU kernels are not timed, only the calls that launch them" if cuda.is_available() else
                          "CUDA is not available, disabling CUDA profiling", stacklevel=2)  # fmt: skip
        self._options: dict[str, Any] = {"record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
                         "with_flops": with_flops, "with_modules": with_modules}  # fmt: skip
        _Recorder(**self._options)  # raises for unsupported options now instead of later
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._recorder: _Recorder | None = None  # recorder of the current steps
        self._last: _Recorder | None = None  # recorder of the last trace
        self._region: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin profiling, as entering the block does."""
        self.current_action = self.schedule(0) if self.schedule is not None else ProfilerAction.RECORD_AND_SAVE
        self._begin_step()

    def stop(self) -> None:
        """End profiling, as leaving the block does; the recording becomes a trace."""
        self._end_region()
        if self._recorder is not None:
            self._finish()

    def step(self) -> None:
        """Mark the end of a step and the beginning of the next."""
        self._end_region()
        before = self.current_action
        self.step_num += 1
        if self.schedule is not None:
            self.current_action = self.schedule(self.step_num)
            if before is ProfilerAction.RECORD_AND_SAVE or (before is ProfilerAction.RECORD and self.current_action not in _RECORDING):
                self._finish()
        self._begin_step()

    def _begin_step(self) -> None:
        if self.current_action not in _RECORDING:
            return
        if self._recorder is None:
            self._recorder = _Recorder(**self._options)
            self._recorder.__enter__()
        if self.schedule is not None:
            self._region = record_function(f"ProfilerStep#{self.step_num}")
            self._region.__enter__()

    def _end_region(self) -> None:
        if self._region is not None:
            self._region.__exit__()
            self._region = None

    def _finish(self) -> None:
        assert self._recorder is not None
        self._recorder.__exit__()
        self._last, self._recorder = self._recorder, None
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _trace(self) -> _Recorder:
        found = self._recorder or self._last
        if found is None:
            raise AssertionError("Profiler must be initialized before exporting: no step has been recorded yet")
        return found

    def events(self) -> EventList:
        """All calls of the last trace. Raises: AssertionError if no step has been recorded."""
        return self._trace().function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The calls of the last trace, grouped by name; see `EventList.table`."""
        return self._trace().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all calls of the last trace."""
        return self._trace().total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Write the last trace as JSON for chrome://tracing or Perfetto."""
        self._trace().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Raises NotImplementedError: stacks are not recorded."""
        raise NotImplementedError("profile.export_stacks: stacks are not recorded")


__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]  # fmt: skip
