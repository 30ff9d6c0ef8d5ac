"""Sequences of different lengths: packing, padding and unpacking."""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.flags import check_flags as _check_flags
from eager.optable.table import OPS


class _Packed(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Packed):
    """Sequences sorted by falling length and stored time step by time step.

    data: (sum of lengths, *); batch_sizes[t]: number of sequences that reach step t. Made by `pack_padded_sequence`.
    """

    __slots__ = ()

    def __new__(cls, data: Tensor, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> PackedSequence:  # fmt: skip
        if batch_sizes is None:
            raise ValueError("batch_sizes should not be None")
        if batch_sizes.device.type != "cpu":
            raise ValueError("batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                             "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                             "nn.utils.rnn.")  # fmt: skip
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequences, moved or cast."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if t is None else t.to(data.device) for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self) -> PackedSequence:
        """The same sequences on the CPU."""
        return self.to("cpu")

    def cuda(self) -> PackedSequence:
        """The same sequences on the CUDA device."""
        return self.to("cuda")

    def float(self) -> PackedSequence:
        """The same sequences in float32."""
        return self.to(dtypes.float32)

    def double(self) -> PackedSequence:
        """The same sequences in float64."""
        return self.to(dtypes.float64)

    def half(self) -> PackedSequence:
        """The same sequences in float16."""
        return self.to(dtypes.float16)

    def long(self) -> PackedSequence:
        """The same sequences in int64."""
        return self.to(dtypes.int64)

    def int(self) -> PackedSequence:
        """The same sequences in int32."""
        return self.to(dtypes.int32)

    def short(self) -> PackedSequence:
        """The same sequences in int16."""
        return self.to(dtypes.int16)

    def char(self) -> PackedSequence:
        """The same sequences in int8."""
        return self.to(dtypes.int8)

    def byte(self) -> PackedSequence:
        """The same sequences in uint8."""
        return self.to(dtypes.uint8)

    def pin_memory(self) -> PackedSequence:
        """The same sequences in page-locked memory."""
        return type(self)(self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def is_pinned(self) -> bool:
        """Whether the data is in page-locked memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes the given one."""
    if permutation is None:
        return None
    n = permutation.shape[0]
    positions = OPS["arange"](0, n, 1, dtypes.int64, permutation.device)
    return OPS["scatter"](OPS["full"]((n,), 0, dtypes.int64, permutation.device), 0, permutation, positions)


def _lengths(lengths: Any) -> list[int]:
    return [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack padded sequences. input: (t, n, *), or (n, t, *) with batch_first; lengths: (n,).

    enforce_sorted: require falling lengths. Raises: RuntimeError for a length of 0, unsorted or too large lengths.
    """
    sizes = _lengths(lengths)
    sorted_indices = None
    if batch_first:
        input = input.transpose(0, 1)
    if len(sizes) != input.shape[1]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={input.shape[1]})")
    if not enforce_sorted:
        order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
        sizes = [sizes[i] for i in order]
        sorted_indices = input.new_tensor(order, dtype=dtypes.int64)
        input = OPS["index_select"](input, 1, sorted_indices)
    if any(n <= 0 for n in sizes):
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(a < b for a, b in itertools.pairwise(sizes)):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                           "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement "
                           "if you do not need ONNX exportability.")  # fmt: skip
    if sizes[0] > input.shape[0]:
        raise RuntimeError(f"Expected lengths to be at most {input.shape[0]}, the time dim of the input, but got {sizes[0]}")
    batch_sizes = [sum(n > t for n in sizes) for t in range(sizes[0])]
    steps = [input[t, :b] for t, b in enumerate(batch_sizes)]
    counts = Tensor(0).new_tensor(batch_sizes, dtype=dtypes.int64)
    return PackedSequence(OPS["cat"](steps, 0), counts, sorted_indices, None)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The padded sequences (t, n, *), or (n, t, *) with batch_first, and their lengths (n,).

    total_length: pad up to this t. Raises: ValueError if it is below the longest length.
    """
    _check_flags("_pad_packed_sequence", batch_first=batch_first)
    batch_sizes = _lengths(sequence.batch_sizes)
    longest, n = len(batch_sizes), batch_sizes[0]
    if total_length is not None:
        if total_length < longest:
            raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                             f"total_length={total_length} and max sequence length being {longest}")  # fmt: skip
        longest = total_length
    rows, offset = [], 0
    tail = tuple(sequence.data.shape[1:])
    for b in batch_sizes:
        step = sequence.data[offset : offset + b]
        offset += b
        if b < n:
            step = OPS["cat"]([step, step.new_full((n - b, *tail), padding_value)], 0)
        rows.append(step)
    padded = OPS["stack"](rows, 0)
    if longest > len(batch_sizes):
        padded = OPS["cat"]([padded, padded.new_full((longest - len(batch_sizes), n, *tail), padding_value)], 0)
    lengths = sequence.batch_sizes.new_tensor([sum(b > i for b in batch_sizes) for i in range(n)])
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = OPS["index_select"](padded, 0 if batch_first else 1, sequence.unsorted_indices)
        lengths = OPS["index_select"](lengths, 0, sequence.unsorted_indices.cpu())
    return padded, lengths


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Sequences (l_i, *) as one tensor (t, n, *), or (n, t, *) with batch_first, filled up with padding_value.

    Raises: RuntimeError for an argument that is not an iterable, an empty list or another padding_side.
    """
    _check_flags("pad_sequence", batch_first=batch_first)
    if isinstance(sequences, Tensor):
        sequences = list(sequences)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = list(sequences)
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        gap = longest - s.shape[0]
        if gap:
            fill = s.new_full((gap, *s.shape[1:]), padding_value)
            s = OPS["cat"]([s, fill] if padding_side == "right" else [fill, s], 0)
        padded.append(s)
    return OPS["stack"](padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences (l_i, *) of a padded tensor. Raises: ValueError unless there is one length per sequence."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(rows, _lengths(lengths), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (l_i, *)."""
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences (l_i, *) of a packed sequence."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
