"""Eager convolutions by cuDNN, where nvidia-cudnn-frontend is installed.

Owns cuDNN's graphs: each computes one kind of convolution for one geometry, and is built once. A geometry that cuDNN does not support
is computed by the other kernels of the op table.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from eager.base import dtypes, logs, precision
from eager.base.cudnn_flags import TYPES, flags
from eager.base.records import dataclass

__all__ = ["Convolutions", "Kind", "frontend"]

# "forward": y from x and the weight. "input": dx from dy and the weight. "weight": dw from x and dy.
Kind: TypeAlias = Literal["forward", "input", "weight"]
_LOG: Final = logs.component("inductor")
_ALIGNED: Final = 16  # bytes; cuDNN's default for the address of a tensor
_KEPT: Final = 1024  # graphs


@lru_cache(maxsize=1)
def frontend() -> Any | None:
    """cuDNN's Python module; None if it is not installed, or finds no library."""
    try:
        module = importlib.import_module("cudnn")
        _LOG.log(f"eager convolutions use cuDNN {module.backend_version()}")
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        _LOG.log(f"eager convolutions do not use cuDNN: {error}")
        return None
    return module


class _Array(NamedTuple):
    """Sizes, strides in elements, and dtype name."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class _Key(NamedTuple):
    """One convolution: its operands in the order of `Kind`, its result, its geometry, and the properties that its algorithms may have."""

    kind: Kind
    a: _Array
    b: _Array
    out: _Array
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    device: int
    is_tf32: bool
    is_deterministic: bool


class _Graph(NamedTuple):
    """A built graph, its tensors and the bytes of its workspace."""

    graph: Any
    tensors: tuple[Any, Any, Any]
    workspace_bytes: int


@dataclass(slots=True)
class Convolutions:
    """Convolutions by cuDNN's module over arrays of `xp`."""

    cudnn: Any
    xp: Any
    _graphs: dict[_Key, _Graph | None] = field(default_factory=dict)
    _handles: threading.local = field(default_factory=threading.local)  # a handle has one stream, so that threads cannot share it

    def run(self, kind: Kind, out: Any, a: Any, b: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> bool:
        """Compute one convolution into `out`, in the order of the current stream. False if cuDNN does not compute it."""
        of = dtypes.from_numpy(out.dtype).name
        if not flags.enabled or of not in TYPES or not a.dtype == b.dtype == out.dtype or 0 in (a.size, b.size, out.size):
            return False
        is_last = any(_is_dense(x, True) and not _is_dense(x, False) for x in (a, b))
        a, b = (x if _is_dense(x, is_last) and _is_aligned(x) else self._copied(x, is_last) for x in (a, b))
        result = out if _is_dense(out, is_last) and _is_aligned(out) else self._empty(out, is_last)
        is_tf32 = flags.allow_tf32 and precision.get_float32_matmul_precision() != "highest"
        is_deterministic = flags.deterministic or precision.are_deterministic_algorithms_enabled()
        device = self.xp.cuda.runtime.getDevice()
        first, second, third = (_described(x, of, is_last) for x in (a, b, result))
        steps, edges, gaps = _of_images(stride, padding, dilation)
        key = _Key(kind, first, second, third, steps, edges, gaps, device, is_tf32, is_deterministic)
        graph = self._graph(key)
        if graph is None:
            return False
        handle = self._handle(device)
        self.cudnn.set_stream(handle=handle, stream=self.xp.cuda.get_current_stream().ptr)
        workspace = self.xp.cuda.alloc(graph.workspace_bytes) if graph.workspace_bytes else None
        pointers = {t: int(x.data.ptr) for t, x in zip(graph.tensors, (a, b, result), strict=True)}
        graph.graph.execute(pointers, int(workspace.ptr) if workspace is not None else 0, handle=handle)
        if result is not out:
            self.xp.copyto(out, result)
        return True

    def _empty(self, x: Any, is_last: bool) -> Any:
        """Memory for an array of the sizes of `x`, row-major or channels-last."""
        if not is_last:
            return self.xp.empty(x.shape, x.dtype)
        order = _channels_last(x)
        return self.xp.empty([x.shape[d] for d in order], x.dtype).transpose([order.index(d) for d in range(x.ndim)])

    def _copied(self, x: Any, is_last: bool) -> Any:
        made = self._empty(x, is_last)
        self.xp.copyto(made, x)
        return made

    def _handle(self, device: int) -> Any:
        handles: dict[int, Any] = self._handles.__dict__.setdefault("by_device", {})
        if device not in handles:
            handles[device] = self.cudnn.create_handle()
        return handles[device]

    def _graph(self, key: _Key) -> _Graph | None:
        """The graph of a key; None if cuDNN does not support it, which is logged once."""
        if key in self._graphs:
            with suppress(KeyError):  # another thread has dropped it meanwhile
                return self._graphs[key]
        made: _Graph | None = None
        try:
            made = self._built(key)
        except (RuntimeError, ValueError, TypeError) as error:  # cuDNN's errors are RuntimeErrors
            _LOG.log(f"cuDNN does not compute the {key.kind} convolution of {key.a.sizes} and {key.b.sizes}: {error}")
        for oldest in list(self._graphs)[: max(0, len(self._graphs) + 1 - _KEPT)]:
            self._graphs.pop(oldest, None)
        self._graphs[key] = made
        return made

    def _built(self, key: _Key) -> _Graph:
        """Raises: RuntimeError if cuDNN has no algorithm."""
        cudnn = self.cudnn
        of, wide = getattr(cudnn.data_type, TYPES[key.a.dtype]), cudnn.data_type.FLOAT
        handle = self._handle(key.device)
        graph = cudnn.pygraph(handle=handle, io_data_type=of, intermediate_data_type=wide, compute_data_type=wide)
        a, b = (graph.tensor(name=n, dim=list(x.sizes), stride=list(x.strides), data_type=of) for n, x in (("a", key.a), ("b", key.b)))
        geometry = {"pre_padding": list(key.padding), "post_padding": list(key.padding), "stride": list(key.stride),
                    "dilation": list(key.dilation), "compute_data_type": wide}  # fmt: skip
        if key.kind == "forward":
            out = graph.conv_fprop(image=a, weight=b, **geometry)
        elif key.kind == "input":
            out = graph.conv_dgrad(loss=a, filter=b, **geometry)
        else:
            out = graph.conv_wgrad(image=a, loss=b, **geometry)
        out.set_output(True).set_data_type(of).set_dim(list(key.out.sizes)).set_stride(list(key.out.strides))
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.deselect_numeric_notes(self._refused(key))
        graph.check_support()
        graph.build_plans()
        return _Graph(graph, (a, b, out), int(graph.get_workspace_size()))

    def _refused(self, key: _Key) -> list[Any]:
        """Properties that no algorithm may have."""
        note = self.cudnn.numerical_note
        found = [note.REDUCED_PRECISION_REDUCTION, note.DOWN_CONVERT_INPUTS]
        if key.a.dtype == "float32" and not key.is_tf32:
            found.append(note.TENSOR_CORE)
        return [*found, note.NONDETERMINISTIC] if key.is_deterministic else found


def _channels_last(a: Any) -> list[int]:
    """The dims of a channels-last array in the order of its memory."""
    return [0, *range(2, a.ndim), 1]


def _is_dense(a: Any, is_last: bool) -> bool:
    """Whether an array is row-major, or channels-last. Some arrays are both."""
    return bool((a.transpose(_channels_last(a)) if is_last else a).flags.c_contiguous)


def _is_aligned(a: Any) -> bool:
    return int(a.data.ptr) % _ALIGNED == 0


def _described(a: Any, of: str, is_last: bool) -> _Array:
    """A dense array for cuDNN, whose images have two axes or more: an image of one axis gets one of size 1 before it."""
    sizes = (*a.shape[:2], 1, *a.shape[2:]) if a.ndim == 3 else tuple(a.shape)
    order = [0, *range(2, len(sizes)), 1] if is_last else range(len(sizes))
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d], step = step, step * sizes[d]
    return _Array(sizes, tuple(strides), of)


def _of_images(stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, ...]]:
    """The geometry for `_described` arrays."""
    parts = ((stride, 1), (padding, 0), (dilation, 1))
    return [(neutral, *of) if len(of) == 1 else tuple(of) for of, neutral in parts]
