"""`python -m benchmarks.worker LIBRARY THREADS`: a measuring process, under framejit, torch or an inference engine.

Reads one JSON request a line, answers one JSON line each. In a process of torch, `eager` means torch, so that both run the same
rows. A process imports no other library than the measured one: its peak memory is that library's. Requests:

    open    row, suite, mode       build the program; close an earlier one
    warm    variant                first calls of a variant ("compiled", "eager", "copy") -> s, of the first call
    time    variant, count         -> s, of `count` calls
    sample  variant                -> up to 4096 elements of each result of the first call, evenly spaced; the losses of the first
                                   three training steps, which depend on the gradients and the updates
    peak                           -> mb, the largest resident memory so far; running_mb, since the last warm
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np

SAMPLED = 4096  # most elements of a result that are compared


class Program(Protocol):
    """A row opened in one library. steps: whether each run changes the program's weights."""

    steps: bool

    def variant(self, name: str) -> Callable[[], Any]:
        """A run of the program in one way."""
        ...

    def arrays(self, result: Any) -> list[np.ndarray]:
        """The result of a run."""
        ...


class TensorProgram:
    """A row under framejit or torch. mode: of torch.compile; "best" is torch's fastest for the row."""

    def __init__(self, library: str, suite: str, name: str, mode: str) -> None:
        self._torch = importlib.import_module("eager")
        if library == "torch":
            self._torch.compiler.reset()
        rows = importlib.import_module(f"benchmarks.{suite}").ROWS
        self._row = next(r for r in rows if r.name == name)
        self._case = self._row.make()
        self.steps = self._case.optimizer is not None
        self._options: dict[str, Any] = {"dynamic": False, "mode": "default" if mode == "best" else mode}
        if mode == "best":
            _prefer_fastest(self._torch, self._row, self._case)

    def variant(self, name: str) -> Callable[[], Any]:
        if name == "copy":
            half = self._row.nbytes // 8  # read and write are half of the bytes each
            source, target = np.ones(half, np.float32), np.ones(half, np.float32)
            return lambda: np.copyto(target, source)
        if name == "eager":
            return self._case.runner()
        return self._case.runner(lambda fn: self._torch.compile(fn, **self._options))

    def arrays(self, result: Any) -> list[np.ndarray]:
        if self._case.update:
            return []
        results = result if isinstance(result, tuple) else (result,)
        return [r.detach().float().numpy() for r in results if r is not None]


def _prefer_fastest(torch: Any, row: Any, case: Any) -> None:
    """Torch's settings for the CPU: weights frozen for inference, channels_last for convolution networks."""
    inference = case.optimizer is None
    settings: Any = importlib.import_module("torch._inductor.config")
    settings.freezing = inference
    if row.images:
        case.fn.to(memory_format=torch.channels_last)
        for x in case.inputs:
            if x.dim() == 4:
                x.data = x.to(memory_format=torch.channels_last)


class EngineProgram:
    """An exported row under ONNX Runtime or OpenVINO. path: the .onnx file; its inputs are beside it, in input_I.npy."""

    steps = False

    def __init__(self, library: str, path: Path, threads: int) -> None:
        given = [np.load(p) for p in sorted(path.parent.glob("input_*.npy"))]
        self._run = (_onnxruntime if library == "onnxruntime" else _openvino)(path, given, threads)

    def variant(self, name: str) -> Callable[[], Any]:
        return self._run

    def arrays(self, result: Any) -> list[np.ndarray]:
        return [np.asarray(r) for r in result]


def _onnxruntime(path: Path, given: list[np.ndarray], threads: int) -> Callable[[], Any]:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.force_spinning_stop", "1")  # its threads must not run while a peer is measured
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = dict(zip((i.name for i in session.get_inputs()), given, strict=True))
    return lambda: session.run(None, feeds)


def _openvino(path: Path, given: list[np.ndarray], threads: int) -> Callable[[], Any]:
    core = importlib.import_module("openvino").Core()
    config = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(str(path), "CPU", config)
    request = compiled.create_infer_request()
    for i, array in enumerate(given):
        request.input_tensors[i].data[:] = array

    def run() -> Any:
        request.infer()
        return [t.data for t in request.output_tensors]

    return run


class Worker:
    """Answers requests about one open row."""

    def __init__(self, library: str, threads: int) -> None:
        self._library, self._threads = library, threads
        self._program: Program | None = None
        self._runs: dict[str, Callable[[], Any]] = {}
        self._samples: dict[str, list[list[float]]] = {}
        self._peak_kb = 0
        if library in ("eager", "torch"):
            alias(library)
            importlib.import_module("eager").set_num_threads(threads)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do one request; the method of its name."""
        arguments = {k: v for k, v in request.items() if k != "do"}
        answer: dict[str, Any] = getattr(self, request["do"])(**arguments)
        return answer

    def open(self, row: str, suite: str, mode: str) -> dict[str, Any]:
        self._runs.clear()
        self._program = None
        gc.collect()
        if self._library in ("eager", "torch"):
            self._program = TensorProgram(self._library, suite, row, mode)
        else:
            self._program = EngineProgram(self._library, Path(row), self._threads)
        return {}

    def warm(self, variant: str) -> dict[str, Any]:
        assert self._program is not None
        start = time.perf_counter()
        run = self._runs[variant] = self._program.variant(variant)
        result = run()
        first_s = time.perf_counter() - start
        self._samples[variant] = self._sampled(result)
        del result
        for _ in range(2):
            again = self._sampled(run())
            if self._program.steps:
                self._samples[variant] += again
        self._peak_kb = max(self._peak_kb, _peak_kb())
        with suppress(OSError):  # 5: begin to record the largest resident memory again
            Path("/proc/self/clear_refs").write_text("5")
        return {"s": first_s}

    def time(self, variant: str, count: int) -> dict[str, Any]:
        run = self._runs[variant]
        start = time.perf_counter()
        for _ in range(count):
            run()
        return {"s": time.perf_counter() - start}

    def sample(self, variant: str) -> dict[str, Any]:
        return {"values": self._samples[variant]}

    def _sampled(self, result: Any) -> list[list[float]]:
        assert self._program is not None
        found = []
        for array in self._program.arrays(result):
            flat = array.reshape(-1)
            found.append(flat[:: max(1, flat.size // SAMPLED)][:SAMPLED].astype(np.float64).tolist())
        return found

    def peak(self) -> dict[str, Any]:
        running = _peak_kb()
        return {"mb": max(self._peak_kb, running) / 1024, "running_mb": running / 1024}


def _peak_kb() -> int:
    """The largest resident memory of this process since it was last cleared."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def alias(library: str) -> None:
    """Let `import eager` in the rows give the measured library."""
    if library != "eager":
        for name in ("", ".nn", ".nn.functional"):
            sys.modules[f"eager{name}"] = importlib.import_module(f"{library}{name}")


def _answers() -> TextIO:
    """Standard output for answers alone: prints of the libraries go to standard error."""
    kept = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return kept


class Answering(Protocol):
    """A process that answers requests."""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do one request."""
        ...


def serve(make: Callable[[], Answering]) -> None:
    """Answer each line of the input until it ends. make: called when prints no longer reach the answers."""
    out = _answers()
    answering = make()
    for line in sys.stdin:
        try:
            answer = answering.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the parent reports it as the row's result
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    serve(lambda: Worker(sys.argv[1], int(sys.argv[2])))
