"""The rows of `python -m benchmarks models`: networks with random weights, inference and training.

Owns batch sizes, inputs and required ratios. A training row is one step: forward, backward, update.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import eager as torch
from benchmarks import nets
from benchmarks.demo import gpt, minilm
from benchmarks.rows import Case, Row, draw, drawn, integers
from eager import nn

__all__ = ["EAGER_REQUIRED", "ROWS", "required"]

# The least speed, as a multiple of the fastest peer's: torch's best mode and, for inference, ONNX Runtime and OpenVINO.
_REQUIRED: Final = {"inference": 1.1, "training": 1.4}
_REQUIRED_OF: Final = {"ResNet-50": 1.05, "ResNet-50, training": 1.2}
# The least speed as a multiple of this project's eager execution.
EAGER_REQUIRED: Final = {"MiniLM, 1 x 11": 1.5, "MiniLM, 5 x 28": 1.5, "MiniLM, 8 x 128": 1.5, "small GPT, training": 2.0}


def required(row: Row) -> float:
    """The least speed of a row as a multiple of the fastest peer's."""
    return _REQUIRED_OF.get(row.name, _REQUIRED[row.group])


def _inference(model: Callable[[], nn.Module], inputs: Callable[[], torch.Tensor]) -> Callable[[], Case]:
    return lambda: Case(drawn(model()).eval(), (inputs(),))


def _training(
    model: Callable[[], nn.Module], inputs: Callable[[], torch.Tensor], targets: Callable[[], torch.Tensor], momentum: bool
) -> Callable[[], Case]:
    def make() -> Case:
        loss = nets.Loss(drawn(model())).train()
        weights = list(loss.parameters())
        # At a rate of 1e-3 the losses of ResNet-50 differ by 9 % between float32 and float64 after three steps.
        optimizer = torch.optim.SGD(weights, 1e-4, momentum=0.9) if momentum else torch.optim.AdamW(weights, 1e-4)
        return Case(loss, (inputs(), targets()), optimizer=optimizer)

    return make


def _both(
    name: str, model: Callable[[], nn.Module], inputs: Callable[[int], torch.Tensor], targets: Callable[[int], torch.Tensor],
    batches: tuple[int, int], *, images: bool = False, training_model: Callable[[], nn.Module] | None = None,
) -> tuple[Row, Row]:  # fmt: skip
    inference, training = batches
    step = _training(training_model or model, partial(inputs, training), partial(targets, training), momentum=images)
    return (
        Row(name, "inference", _inference(model, partial(inputs, inference)), images=images),
        Row(f"{name}, training", "training", step, images=images),
    )


def _images(size: int) -> Callable[[int], torch.Tensor]:
    return lambda b: draw(b, 3, size, size)


def _tokens(vocabulary: int, length: int, seed: int = 0) -> Callable[[int], torch.Tensor]:
    return lambda b: integers(vocabulary, b, length, seed=seed)


def _classes(b: int) -> torch.Tensor:
    return integers(1000, b)


def _minilm(b: int, length: int) -> Callable[[], Case]:
    def make() -> Case:
        model = drawn(minilm.MiniLM(minilm.Config(30522, 384, 6, 12, 1536, 512, 2, 1e-12))).eval()
        return Case(model, (integers(30522, b, length), torch.ones(b, length, dtype=torch.int64)))

    return make


def _small_gpt() -> Case:
    config = gpt.Config()
    model = gpt.build(config, 0)
    inputs = tuple(integers(config.vocab_size, config.batch, config.context, seed=i) for i in range(2))
    return Case(model, inputs, optimizer=torch.optim.AdamW(model.parameters(), config.peak_lr))


ROWS: Final[tuple[Row, ...]] = (
    *_both("ResNet-50", nets.ResNet50, _images(224), _classes, (4, 2), images=True),
    *_both("BERT-base", nets.Bert, _tokens(30522, 128), _tokens(30522, 128, 1), (4, 2), training_model=partial(nets.Bert, words=True)),
    *_both("ViT-B/16", nets.ViT, _images(224), _classes, (2, 2)),
    *_both("GPT-2 124M", nets.GPT2, _tokens(50257, 256), _tokens(50257, 256, 1), (1, 1)),
    *_both("U-Net", nets.UNet, _images(128), lambda b: integers(2, b, 128, 128), (2, 2), images=True),
    *_both("LSTM", nets.LSTMModel, _tokens(10000, 32), _tokens(10000, 32, 1), (8, 8)),
    *_both("MLP-Mixer S/16", nets.Mixer, _images(224), _classes, (4, 4)),
    *(Row(f"MiniLM, {b} x {length}", "inference", _minilm(b, length)) for b, length in ((1, 11), (5, 28), (8, 128))),
    Row("small GPT, training", "training", _small_gpt),
)
