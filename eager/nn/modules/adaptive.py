"""Adaptive softmax: many classes, grouped in clusters that each share one entry of the head."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from eager._tensor.tensor import Tensor
from eager.base.device import device as Device
from eager.base.dtypes import dtype as DType
from eager.nn.functional import activation
from eager.nn.module import Module
from eager.nn.modules.container import ModuleList, Sequential
from eager.nn.modules.linear import Linear
from eager.optable.table import OPS


class _ASMoutput(NamedTuple):
    """output: (n,) log probabilities of the targets. loss: () negative mean of them."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log softmax over n_classes sorted by falling frequency: a head over the first classes plus one entry per cluster.

    cutoffs: the first class of each cluster. Cluster i uses in_features / div_value ** (i + 1) features.
    Raises: ValueError unless cutoffs are unique, increasing integers in [1, n_classes).
    Source: Grave et al., 2017 (arXiv:1609.04309).
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Device | str | None = None, dtype: DType | None = None) -> None:  # fmt: skip
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if ends != sorted(set(ends)) or ends[0] <= 0 or ends[-1] > n_classes - 1 or any(int(c) != c for c in ends):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where "
                             "each value is between 1 and n_classes-1")  # fmt: skip
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, width, bias=False, device=device, dtype=dtype),
                                        Linear(width, classes, bias=False, device=device, dtype=dtype)))  # fmt: skip

    def reset_parameters(self) -> None:
        """Reset the parameters of every linear layer."""
        self.head.reset_parameters()
        for projection in self.tail:
            for layer in projection:
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Log probability of each target, and their negative mean. Each cluster processes only the rows of its classes.

        input_: (n, in_features) with target_ (n,), or (in_features,) with target_ ().
        Raises: RuntimeError for other ranks or batch sizes, or a target outside [0, n_classes).
        """
        input, target = self._rows(input_, target_)
        head = activation.log_softmax(self.head(input), 1)
        column = target.clone()
        gathered = OPS["full"]((target.shape[0],), 0.0, head.dtype, head.device)
        used = 0
        for i, (low, high) in enumerate(zip([0, *self.cutoffs[:-1]], self.cutoffs, strict=True)):
            inside: Any = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            used += rows.numel()
            if i == 0 or rows.numel() == 0:
                continue
            within = OPS["index_select"](target, 0, rows) - low
            log_p = activation.log_softmax(self.tail[i - 1](OPS["index_select"](input, 0, rows)), 1)
            gathered = OPS["index_copy"](gathered, 0, rows, OPS["gather"](log_p, 1, within.unsqueeze(1)).squeeze(1))
            column = OPS["index_fill"](column, 0, rows, self.shortlist_size + i - 1)
        if used != target.shape[0]:
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found. ")  # fmt: skip
        output = gathered + OPS["gather"](head, 1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if input is not input_ else output, loss)

    @staticmethod
    def _rows(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if target.ndim == 1:
            if input.shape[0] != target.shape[0]:
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input.ndim != 2:
                raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with size", input.size())
            return input, target
        if target.ndim == 0:
            if input.ndim != 1:
                raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with size", input.size())
            return input.unsqueeze(0), target.unsqueeze(0)
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")

    def _full_log_prob(self, input: Tensor, head: Tensor) -> Tensor:
        log_p = activation.log_softmax(head, 1)
        n = self.shortlist_size
        parts = [OPS["slice"](log_p, 1, 0, n, 1)]
        for i, projection in enumerate(self.tail):
            parts.append(activation.log_softmax(projection(input), 1) + OPS["slice"](log_p, 1, n + i, n + i + 1, 1))
        return OPS["cat"](parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log probabilities of all classes. input: (n, in_features); result: (n, n_classes)."""
        return self._full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row: (n, in_features) -> (n,).

        Evaluates a cluster only if the head prefers it.
        """
        head = self.head(input)
        best = OPS["argmax"](head, (1,), False)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return best
        log_p = self._full_log_prob(OPS["index_select"](input, 0, rows), OPS["index_select"](head, 0, rows))
        return OPS["index_copy"](best, 0, rows, OPS["argmax"](log_p, (1,), False))

