"""Models and training runs on the CUDA device at hand, eager and in every mode, against eager results of the CPU.

`python -m tests.cuda.models NAME` runs one of `PARTS`; it prints nothing, or raises. `test_models.py` runs each where CUDA is emulated.
"""
from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import eager as torch
from benchmarks.demo import gpt, minilm
from eager import as_torch, nn
from eager.base import logs, settings
from eager.cuda import backend as cuda
from eager.nn import functional as F
from inductor.runtime import emulated
from inductor.runtime.cuda import Code
from tests.zoo.agreement import agree

as_torch.install()
from tests.zoo import runner  # noqa: E402 - models are written for torch
from tests.zoo.case import Draw  # noqa: E402

CASES = runner.cases()
as_torch.uninstall()

MODES = ("default", "reduce-overhead", "max-autotune")
Inputs = Callable[[Draw], tuple[Any, ...]]

# Each model of the zoo, by the part that runs it; with smaller inputs, as kernels run in an interpreter.
MODELS: dict[str, dict[str, Inputs | None]] = {
    "convolution": {"cbam": lambda d: (d.normal(1, 3, 6, 6),), "textcnn": lambda d: (d.integers(20, 1, 5),)},
    "attention": {"gpt2": lambda d: (d.integers(32, 1, 4), d.integers(32, 1, 4)), "set_transformer": lambda d: (d.normal(1, 4, 2),)},
    "recurrence": {"lstm_lm": lambda d: (d.integers(20, 3, 2),), "neural_ode_euler": lambda d: (d.normal(2, 3),)},
    "tables": {"dlrm": None, "gcn": None, "simclr": None, "vae": None},
}


@contextmanager
def compiled_for_cuda() -> Iterator[None]:
    """Fails unless the block's compiled code runs kernels of plans on CUDA, and none of it falls back to eager code.

    On a GPU, the kernels that a plan loads are counted instead of launches.
    """
    torch._dynamo.reset()
    kernels: list[str] = []
    if cuda.backend().is_emulated:
        run_kernel = emulated.run_kernel
        counting = patch.object(emulated, "run_kernel", lambda name, *rest: (kernels.append(name), run_kernel(name, *rest)))
    else:
        function = Code.function
        counting = patch.object(Code, "function", lambda code, number: (kernels.append(str(number)), function(code, number))[1])
    with counting, logs.capture() as records, settings.scope(capture_suppress_errors=False):
        yield
        torch.cuda.synchronize()
    warnings = [r.message for r in records if r.level >= logging.WARNING]
    assert not warnings, warnings
    assert kernels, "no kernel ran"


def model_of_the_zoo(name: str, inputs: Inputs | None) -> None:
    case = CASES[name]
    if inputs is not None:
        case = dataclasses.replace(case, inputs=inputs)
    run = partial(runner.run, name, case, steps=1, evaluates=False)
    wanted = run()
    agree(run(device="cuda"), wanted, case.rtol)
    for mode in MODES:
        with compiled_for_cuda():
            found = run(lambda model, mode=mode: torch.compile(model, mode=mode), device="cuda")
        agree(found, wanted, case.rtol)


def models_of_the_zoo(part: str) -> None:
    for name, inputs in MODELS[part].items():
        model_of_the_zoo(name, inputs)


def _wrap(mode: str | None, model: Any) -> Any:
    return model if mode is None else torch.compile(model, mode=mode)


def in_every_mode(run: Callable[[str, str | None], Any], close: Callable[[Any, Any], None]) -> None:
    """Compare `run("cuda", mode)`, with None for eager code, with `run("cpu", None)`."""
    wanted = run("cpu", None)
    close(run("cuda", None), wanted)
    for mode in MODES:
        with compiled_for_cuda():
            found = run("cuda", mode)
        close(found, wanted)


def demo_trains_a_gpt() -> None:
    config = gpt.Config(vocab_size=32, layers=1, heads=2, width=32, context=16, batch=2, steps=2, warmup_steps=1)
    tokens = np.random.default_rng(0).integers(0, config.vocab_size, 60)

    def losses(where: str, mode: str | None) -> list[float]:
        def on_device(model: nn.Module) -> Callable[..., torch.Tensor]:
            call = _wrap(mode, model.to(where))
            return lambda *batch: call(*(t.to(where) for t in batch))

        trainer = gpt.Trainer(config, tokens, seed=1, compile=on_device)
        return [trainer.step() for _ in range(config.steps)]

    in_every_mode(losses, lambda found, wanted: np.testing.assert_allclose(found, wanted, rtol=1e-5))


def demo_encodes_sentences() -> None:
    """MiniLM with random weights: the published weights may be absent."""
    torch.manual_seed(0)
    model = minilm.MiniLM(minilm.Config(30, 8, 1, 2, 16, 8, 2, 1e-12)).eval()
    ids = torch.randint(0, 30, (2, 5))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])

    def vectors(where: str, mode: str | None) -> NDArray[np.float32]:
        encode = _wrap(mode, model.to(where))
        with torch.no_grad():
            found: NDArray[np.float32] = encode(ids.to(where), mask.to(where)).cpu().numpy()
        return found

    in_every_mode(vectors, lambda found, wanted: np.testing.assert_allclose(found, wanted, atol=1e-5))


def mixed_precision_with_a_scaler() -> None:
    """The first scale is too large: gradients overflow, and the optimizer skips the steps until it has been halved often enough."""
    batches = [(torch.randn(4, 8), torch.randn(4, 4)) for _ in range(4)]

    def run(where: str, mode: str | None) -> tuple[list[float], list[float]]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(where)
        scaler = torch.amp.GradScaler(where, init_scale=2.0**20, backoff_factor=2.0**-4)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        compiled, losses, scales = _wrap(mode, net), [], []
        for x, y in batches:
            optimizer.zero_grad()
            with torch.autocast(where, torch.float16):
                out = compiled(x.to(where))
                loss = F.mse_loss(out.float(), y.to(where))
            assert out.dtype is torch.float16
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(float(loss))
            scales.append(scaler.get_scale())
        return losses, scales

    def close(found: tuple[list[float], list[float]], wanted: tuple[list[float], list[float]]) -> None:
        np.testing.assert_allclose(found[0], wanted[0], rtol=2e-2)
        assert found[1] == wanted[1] and wanted[1][0] < 2.0**20 and wanted[1][-1] == wanted[1][-2]

    in_every_mode(run, close)


def two_streams_with_pinned_prefetch() -> None:
    """Copies of the next batch run on their stream while the default stream computes."""
    batches = [torch.randn(8, 6) for _ in range(4)]

    def prefetched() -> Iterator[torch.Tensor]:
        fetcher = torch.cuda.Stream()

        def fetch(batch: torch.Tensor) -> tuple[torch.Tensor, Any]:
            with torch.cuda.stream(fetcher):
                return batch.pin_memory().to("cuda", non_blocking=True), fetcher.record_event()

        following = fetch(batches[0])
        for i in range(len(batches)):
            x, ready = following
            if i + 1 < len(batches):
                following = fetch(batches[i + 1])
            torch.cuda.current_stream().wait_event(ready)
            x.record_stream(torch.cuda.current_stream())
            yield x

    def run(where: str, mode: str | None) -> list[NDArray[np.float32]]:
        w = torch.ones(6, device=where).requires_grad_()
        scale = _wrap(mode, lambda x: (x * w + 1).tanh().sum(0))
        found = []
        for x in batches if where == "cpu" else prefetched():
            y = scale(x)
            y.sum().backward()
            found.append(y.detach().clone())
        return [t.cpu().numpy() for t in (*found, w.grad)]

    def close(found: list[NDArray[np.float32]], wanted: list[NDArray[np.float32]]) -> None:
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    in_every_mode(run, close)


PARTS: dict[str, Callable[[], None]] = {
    **{part: partial(models_of_the_zoo, part) for part in MODELS},
    **{f.__name__: f for f in (demo_trains_a_gpt, demo_encodes_sentences, mixed_precision_with_a_scaler,
                               two_streams_with_pinned_prefetch)},
}  # fmt: skip

if __name__ == "__main__":
    PARTS[sys.argv[1]]()
