"""Connectionist temporal classification: the loss of unaligned label sequences.

Source: Graves et al., "Connectionist Temporal Classification", 2006. The forward recursion runs over all
samples at once, in log space, as ops; autograd derives the backward pass.
"""
from __future__ import annotations

from typing import Any

from eager._native import TensorBase
from eager.base import dtypes
from eager.nn.functional.loss import resolve_reduction
from eager.optable.asserting import demand
from eager.optable.declaration import cast_to
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.table import OPS
from eager.public.record import public

Tensor = Any
# Represents log 0: finite, so that no gradient is inf * 0, and far below any sum of log probabilities.
_LOG_ZERO = -1e30


@public(autocast=FLOAT32_ON_CPU)
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """Negative log likelihood of label sequences, summed over all alignments to the input's frames.

    log_probs: (t, n, c) or (t, c). targets: (n, s), or all labels concatenated (sum of target_lengths,). Lengths:
    n integers each, as a tensor or a sequence. Result: (n,), or () for one sample or a reduction; "mean" first
    divides each loss by its target length. zero_infinity: infinite losses become 0, without gradient.
    The gradient belongs to the scores below a log_softmax, as in torch.
    Raises: RuntimeError for lengths that do not fit, or a blank outside [0, c).
    """
    reduction = resolve_reduction(reduction)
    if log_probs.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"\"ctc_loss\" not implemented for {log_probs.dtype}; allowed: float32, float64")
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.ndim == 1 else targets
    steps, n, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    frames = _lengths(input_lengths, n, "input_lengths", log_probs)
    labels = _lengths(target_lengths, n, "target_lengths", log_probs)
    padded = _padded(targets, labels, n, blank)
    _check(frames, labels, steps, padded.shape[1])
    losses = _losses(log_probs, padded, frames, labels, blank)
    if zero_infinity:
        losses = OPS["where"](OPS["isinf"](losses), 0.0, losses)
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return (losses / cast_to(OPS["clamp"](labels, 1, None), losses.dtype)).mean()
    return losses.squeeze(0) if single else losses


def _lengths(given: Any, n: int, name: str, like: Tensor) -> Tensor:
    if not isinstance(given, TensorBase):
        given = like.new_tensor([given] if isinstance(given, int) else list(given), dtype=dtypes.int64)
    if given.dtype.is_floating_point:
        raise RuntimeError(f"{name} must be integral")
    if given.numel() != n:
        raise RuntimeError(f"{name} must be of size batch_size")
    return cast_to(given.reshape(-1), dtypes.int64).to(like.device)


def _padded(targets: Tensor, labels: Tensor, n: int, blank: int) -> Tensor:
    """The labels as (n, s), from that form or from the concatenated form."""
    if targets.ndim == 2:
        if targets.shape[0] != n:
            raise RuntimeError(f"Expected tensor to have size {n} at dimension 0, but got size {targets.shape[0]} for targets "
                               "(while checking arguments for ctc_loss)")  # fmt: skip
        return cast_to(targets, dtypes.int64)
    if targets.ndim != 1:
        raise RuntimeError(f"ctc_loss: targets must have 1 or 2 dims, got {targets.ndim}")
    sizes = [int(v) for v in labels.tolist()]
    if sum(sizes) > targets.shape[0]:
        raise RuntimeError(f"ctc_loss: target_lengths sum to {sum(sizes)}, but targets has {targets.shape[0]} elements")
    longest, starts, offset = max(sizes, default=0), [], 0
    for size in sizes:
        starts.append(offset)
        offset += size
    columns = OPS["arange"](0, longest, 1, dtypes.int64, targets.device)
    start = labels.new_tensor(starts).unsqueeze(1)
    inside = columns < labels.unsqueeze(1)
    index = OPS["where"](inside, start + columns, 0)
    if targets.shape[0] == 0:
        return labels.new_zeros((n, longest))
    picked = OPS["index_select"](cast_to(targets, dtypes.int64), 0, index.reshape(-1)).view(n, longest)
    return OPS["where"](inside, picked, blank)


def _check(frames: Tensor, labels: Tensor, steps: int, width: int) -> None:
    demand(frames <= steps, RuntimeError, lambda: f"Expected input_lengths to have value at most {steps}, but got value "
           f"{int(frames.max())} (while checking arguments for ctc_loss)")  # fmt: skip
    demand(labels <= width, RuntimeError, lambda: f"Expected tensor to have size at least {int(labels.max())} at dimension 1, but got "
           f"size {width} for targets (while checking arguments for ctc_loss)")  # fmt: skip
    for lengths in (frames, labels):
        demand(lengths >= 0, RuntimeError, "ctc_loss: lengths must not be negative")


def _log_add(*terms: Tensor) -> Tensor:
    largest = terms[0].detach()
    for t in terms[1:]:
        largest = OPS["maximum"](largest, t.detach())
    total = OPS["exp"](terms[0] - largest)
    for t in terms[1:]:
        total = total + OPS["exp"](t - largest)
    return OPS["log"](total) + largest


def _losses(log_probs: Tensor, targets: Tensor, frames: Tensor, labels: Tensor, blank: int) -> Tensor:
    """The forward recursion over labels interleaved with blanks. alpha: (n, 2 s + 1)."""
    steps, n, _ = log_probs.shape
    width = 2 * targets.shape[1] + 1
    blanks = OPS["full"]((n, targets.shape[1] + 1), blank, dtypes.int64, targets.device)
    paired = OPS["stack"]([blanks[:, :-1], targets], 2).reshape(n, width - 1)
    extended = OPS["cat"]([paired, blanks[:, :1]], 1)
    # Two neighbouring labels need no blank between them if they differ.
    skips = OPS["cat"]([(blanks[:, :1] != blanks[:, :1]).expand(n, min(2, width)),
                        (extended[:, 2:] != blank) & (extended[:, 2:] != extended[:, :-2])], 1)  # fmt: skip
    log_p = OPS["clamp"](log_probs, _LOG_ZERO, None)
    emitted = OPS["gather"](log_p, 2, extended.unsqueeze(0).expand(steps, n, width))
    position = OPS["arange"](0, width, 1, dtypes.int64, targets.device)
    first = (position < 2) & (position <= 2 * labels.unsqueeze(1))
    floor = emitted[0].detach() * 0 + _LOG_ZERO if steps else OPS["full"]((n, width), _LOG_ZERO, log_probs.dtype, log_probs.device)
    before_any = OPS["where"](position == 0, 0.0, floor)
    alpha = before_any
    for t in range(steps):
        if t == 0:
            moved = OPS["where"](first, emitted[0], floor)
        else:
            one = OPS["constant_pad_nd"](alpha[:, :-1], (1, 0), _LOG_ZERO)
            two = OPS["constant_pad_nd"](alpha[:, :-2], (2, 0), _LOG_ZERO) if width > 2 else floor
            moved = _log_add(alpha, one, OPS["where"](skips, two, floor)) + emitted[t]
        alpha = OPS["where"]((frames > t).unsqueeze(1), moved, alpha)
    last = (2 * labels).unsqueeze(1)
    ends = OPS["gather"](alpha, 1, last).squeeze(1)
    before = OPS["gather"](alpha, 1, OPS["clamp"](last - 1, 0, None)).squeeze(1)
    likelihood = _log_add(ends, OPS["where"](labels > 0, before, _LOG_ZERO))
    losses = OPS["where"](likelihood < _LOG_ZERO / 2, float("inf"), -likelihood)
    # Adds 0 to the value and exp(log_probs) to the gradient; a log_softmax below would cancel that part.
    p = OPS["exp"](log_probs)
    seen = (OPS["arange"](0, steps, 1, dtypes.int64, frames.device).unsqueeze(1) < frames).unsqueeze(2)
    return losses + OPS["where"](seen, p - p.detach(), 0.0).sum((0, 2))
