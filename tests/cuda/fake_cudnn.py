"""cuDNN's Python module with graphs that eager's CPU convolutions compute: `python -m tests.cuda.fake_cudnn NAME`.

It has the names, the parameters and the order of calls of nvidia-cudnn-frontend; a call that the module does not have fails.
"""
from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

import eager as torch
from eager.base import dtypes
from eager.cuda import backend as cuda
from eager.cuda import cudnn_convolutions
from eager.cuda.cudnn_convolutions import Convolutions
from eager.cuda.emulated import streams
from eager.nn import functional as F
from eager.optable.table import OPS

T = torch.Tensor
STAGES = ["validate", "build_operation_graph", "create_execution_plans", "deselect_numeric_notes", "check_support", "build_plans"]


class DataType(Enum):
    HALF = auto()
    BFLOAT16 = auto()
    FLOAT = auto()


class HeurMode(Enum):
    A = auto()
    FALLBACK = auto()


class Note(Enum):
    TENSOR_CORE = auto()
    DOWN_CONVERT_INPUTS = auto()
    REDUCED_PRECISION_REDUCTION = auto()
    NONDETERMINISTIC = auto()


OF = {DataType.HALF: "float16", DataType.BFLOAT16: "bfloat16", DataType.FLOAT: "float32"}


class GraphTensor:
    def __init__(self, dim: Sequence[int], stride: Sequence[int], data_type: DataType | None) -> None:
        self.dim, self.stride, self.data_type, self.is_output = list(dim), list(stride), data_type, False

    def set_output(self, value: bool) -> GraphTensor:
        self.is_output = value
        return self

    def set_data_type(self, value: DataType) -> GraphTensor:
        self.data_type = value
        return self

    def set_dim(self, value: Sequence[int]) -> GraphTensor:
        self.dim = list(value)
        return self

    def set_stride(self, value: Sequence[int]) -> GraphTensor:
        self.stride = list(value)
        return self

    def at(self, address: int) -> np.ndarray:
        of = np.dtype(dtypes.by_name(OF[self.data_type]).numpy)  # type: ignore[index]
        nbytes = of.itemsize * (1 + sum((n - 1) * s for n, s in zip(self.dim, self.stride, strict=True)))
        return np.ndarray(self.dim, of, (ctypes.c_char * nbytes).from_address(address), strides=[s * of.itemsize for s in self.stride])


class Graph:
    """A graph of one convolution. made: all graphs. workspace: bytes that each says it needs."""

    made: ClassVar[list[Graph]] = []
    refuses: Callable[[Graph], bool] = staticmethod(lambda graph: False)
    workspace = 0

    def __init__(self, handle: object, io_data_type: DataType, intermediate_data_type: DataType, compute_data_type: DataType) -> None:
        assert handle is HANDLE and intermediate_data_type is compute_data_type is DataType.FLOAT
        self.io, self.stages, self.runs, self.refused = io_data_type, list[str](), 0, list[Note]()
        Graph.made.append(self)

    def tensor(self, name: str, dim: Sequence[int], stride: Sequence[int], data_type: DataType) -> GraphTensor:
        assert len(dim) == len(stride) >= 4, "an image has two axes or more"
        return GraphTensor(dim, stride, data_type)

    def conv_fprop(self, image: GraphTensor, weight: GraphTensor, **geometry: Any) -> GraphTensor:
        return self._conv("forward", image, weight, **geometry)

    def conv_dgrad(self, loss: GraphTensor, filter: GraphTensor, **geometry: Any) -> GraphTensor:
        return self._conv("input", loss, filter, **geometry)

    def conv_wgrad(self, image: GraphTensor, loss: GraphTensor, **geometry: Any) -> GraphTensor:
        return self._conv("weight", image, loss, **geometry)

    def _conv(self, kind: str, a: GraphTensor, b: GraphTensor, *, pre_padding: list[int], post_padding: list[int], stride: list[int],
              dilation: list[int], compute_data_type: DataType) -> GraphTensor:  # fmt: skip
        assert pre_padding == post_padding and compute_data_type is DataType.FLOAT
        self.kind, self.a, self.b, self.out = kind, a, b, GraphTensor([], [], None)
        self.stride, self.padding, self.dilation = stride, pre_padding, dilation
        return self.out

    def __getattr__(self, stage: str) -> Callable[..., None]:
        if stage not in STAGES:
            raise AttributeError(stage)

        def run(*args: Any) -> None:
            assert stage == STAGES[len(self.stages)], f"{stage} after {self.stages}"
            self.stages.append(stage)
            if stage == "deselect_numeric_notes":
                self.refused = args[0]
            if stage == "check_support" and Graph.refuses(self):
                raise RuntimeError("no engine supports this graph")

        return run

    def get_workspace_size(self) -> int:
        return Graph.workspace

    def execute(self, pointers: dict[GraphTensor, int], workspace: int, handle: object) -> None:
        assert self.stages == STAGES and self.out.is_output and handle is HANDLE and bool(workspace) == bool(Graph.workspace)
        assert all(type(p) is int and p % 16 == 0 for p in pointers.values())
        self.runs += 1
        streams.get_current_stream().enqueue(lambda: self._compute(*(t.at(pointers[t]) for t in (self.a, self.b, self.out))))

    def _compute(self, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        left, right = (torch.from_numpy(np.ascontiguousarray(x.astype(np.float32))) for x in (a, b))
        geometry = tuple(self.stride), tuple(self.padding), tuple(self.dilation)
        spatial = range(len(self.stride))
        if self.kind == "weight":
            found = OPS["conv_weight"](left, right, tuple(out.shape[2:]), *geometry, left.shape[1] // out.shape[1])
        elif self.kind == "forward":
            found = OPS["convolution"](left, right, None, *geometry, False, (0,) * len(spatial), left.shape[1] // right.shape[1])
        else:
            plain = [(left.shape[2 + k] - 1) * self.stride[k] - 2 * self.padding[k] + self.dilation[k] * (right.shape[2 + k] - 1) + 1
                     for k in spatial]  # fmt: skip
            more = tuple(out.shape[2 + k] - plain[k] for k in spatial)
            found = OPS["convolution"](left, right, None, *geometry, True, more, out.shape[1] // right.shape[1])
        out[...] = found.numpy().astype(out.dtype)


class Cudnn:
    """The module."""

    data_type, heur_mode, numerical_note, pygraph = DataType, HeurMode, Note, Graph
    streams: ClassVar[list[int]] = []

    @staticmethod
    def create_handle() -> object:
        return HANDLE

    @staticmethod
    def set_stream(handle: object, stream: int) -> None:
        assert handle is HANDLE
        Cudnn.streams.append(stream)


HANDLE = object()


@contextmanager
def installed() -> Iterator[None]:
    backend = cuda.backend()
    with patch.object(backend, "convolutions", Convolutions(Cudnn, backend.xp)):
        yield


# name, kinds of x, sizes of x and of the weight, arguments
CASES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("plain", (2, 3, 6, 5), (4, 3, 3, 2), {}),
    ("geometry", (2, 4, 9, 8), (6, 2, 3, 2), {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}),
    ("depthwise", (2, 4, 6, 5), (8, 1, 3, 3), {"padding": 1, "groups": 4}),
    ("pixels", (2, 3, 4, 5), (6, 3, 1, 1), {}),
    ("one axis", (2, 3, 11), (4, 3, 4), {"stride": 2, "padding": 1, "dilation": 2}),
    ("three axes", (1, 2, 4, 5, 3), (3, 2, 2, 3, 2), {"padding": (1, 0, 1)}),
)


def convolve(x: T, w: T, bias: T | None, args: dict[str, Any], is_transposed: bool = False) -> T:
    names = {3: "1d", 4: "2d", 5: "3d"}
    return getattr(F, f"conv{'_transpose' if is_transposed else ''}{names[x.ndim]}")(x, w, bias, **args)


def agree(found: T, wanted: T, tolerance: float) -> None:
    assert found.dtype is wanted.dtype and found.stride() == wanted.stride()
    np.testing.assert_allclose(found.detach().cpu().double().numpy(), wanted.detach().double().numpy(), rtol=tolerance, atol=tolerance)


def check(name: str, dtype: torch.dtype, is_last: bool, is_transposed: bool) -> None:
    """The result and all gradients of one case, against the CPU."""
    _, size, kernel, args = next(c for c in CASES if c[0] == name)
    if is_transposed:
        size, kernel = (size[0], kernel[0], *size[2:]), kernel
    bias_size = kernel[1] * args.get("groups", 1) if is_transposed else kernel[0]
    x, w, bias = (torch.randn(*n).to(dtype) for n in (size, kernel, (bias_size,)))
    if is_last and x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    cpu = [t.detach().clone().requires_grad_() for t in (x, w, bias)]
    gpu = [t.detach().cuda().requires_grad_() for t in (x, w, bias)]
    wanted = convolve(*cpu, args, is_transposed)
    before = sum(graph.runs for graph in Graph.made)
    found = convolve(*gpu, args, is_transposed)
    g = torch.randn(*wanted.shape).to(dtype)
    wanted.backward(g)
    found.backward(g.cuda())
    assert sum(graph.runs for graph in Graph.made) == before + 3
    tolerance = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}[dtype.name]
    agree(found, wanted, tolerance)
    for a, b in zip(gpu, cpu, strict=True):
        agree(a.grad, b.grad, tolerance)  # type: ignore[arg-type]


def every_kind_gives_the_values_of_the_cpu() -> None:
    with installed():
        for name, *_ in CASES:
            for dtype, is_last in ((torch.float32, False), (torch.float32, True), (torch.bfloat16, True), (torch.float16, False)):
                check(name, dtype, is_last, is_transposed=False)
            check(name, torch.float32, is_last=False, is_transposed=True)


def graphs_are_built_once_for_a_geometry() -> None:
    x, w = torch.randn(2, 3, 6, 5).cuda(), torch.randn(4, 3, 3, 2).cuda()
    with installed():
        for _ in range(3):
            F.conv2d(x, w)
        (graph,) = Graph.made
        F.conv2d(x, w, padding=1)
    assert graph.runs == 3 and len(Graph.made) == 2


def unaligned_and_strided_arrays_are_copied() -> None:
    x, w = torch.randn(2, 3, 12, 6), torch.randn(4, 3, 3, 2)
    with installed():
        found = F.conv2d(x.cuda()[:, :, ::2, 1:], w.cuda())
    agree(found, F.conv2d(x[:, :, ::2, 1:], w), 1e-4)
    assert len(Graph.made) == 1


def a_refused_convolution_is_computed_by_other_kernels() -> None:
    x, w = torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 2)
    with installed(), patch.object(Graph, "refuses", staticmethod(lambda graph: True)), patch.object(cudnn_convolutions, "_LOG") as log:
        for _ in range(2):
            agree(F.conv2d(x.cuda(), w.cuda()), F.conv2d(x, w), 1e-4)
    (call,) = log.log.call_args_list
    assert len(Graph.made) == 1 and "no engine supports this graph" in call.args[0]


def other_dtypes_and_a_switched_off_library_do_not_reach_it() -> None:
    x, w = torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 2)
    with installed():
        agree(F.conv2d(x.double().cuda(), w.double().cuda()), F.conv2d(x.double(), w.double()), 1e-9)
        with torch.backends.cudnn.flags(enabled=False):
            assert torch.backends.cudnn.enabled is False
            F.conv2d(x.cuda(), w.cuda())
        assert not Graph.made and torch.backends.cudnn.enabled is True
        torch.backends.cudnn.enabled = False
        F.conv2d(x.cuda(), w.cuda())
        torch.backends.cudnn.enabled = True
        assert not Graph.made
        F.conv2d(x.cuda(), w.cuda())
        assert len(Graph.made) == 1


def flags_decide_which_algorithms_are_allowed() -> None:
    x, w = torch.randn(2, 3, 6, 5).cuda(), torch.randn(4, 3, 3, 2).cuda()
    exact, always = Note.TENSOR_CORE, {Note.REDUCED_PRECISION_REDUCTION, Note.DOWN_CONVERT_INPUTS}
    with installed():
        F.conv2d(x, w)
        torch.set_float32_matmul_precision("high")
        F.conv2d(x, w)
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            F.conv2d(x, w)
        F.conv2d(x.bfloat16(), w.bfloat16())
        torch.set_float32_matmul_precision("highest")
        torch.use_deterministic_algorithms(True)
        F.conv2d(x, w)
    notes = [set(graph.refused) for graph in Graph.made]
    assert notes == [always | {exact}, always, always | {exact, Note.NONDETERMINISTIC}, always]
    assert [graph.runs for graph in Graph.made] == [1, 1, 2, 1]


def a_workspace_and_the_current_stream_are_passed() -> None:
    x, w = torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 2)
    with installed(), patch.object(Graph, "workspace", 4096):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            found = F.conv2d(x.cuda(), w.cuda())
        stream.synchronize()
        agree(found, F.conv2d(x, w), 1e-4)
        assert Cudnn.streams[-1] == stream.cuda_stream


def each_thread_has_a_handle() -> None:
    """A handle has one stream: threads with other streams must not change it between the choice of the stream and the launch."""
    x, w = torch.randn(2, 3, 6, 5).cuda(), torch.randn(4, 3, 3, 2).cuda()
    made = []
    with installed(), patch.object(Cudnn, "create_handle", staticmethod(lambda: made.append(1) or HANDLE)):
        for _ in range(2):
            F.conv2d(x, w)
        other = threading.Thread(target=F.conv2d, args=(x, w))
        other.start()
        other.join()
    assert len(made) == 2 and [graph.runs for graph in Graph.made] == [3]


SCENARIOS = (
    every_kind_gives_the_values_of_the_cpu, graphs_are_built_once_for_a_geometry, unaligned_and_strided_arrays_are_copied,
    a_refused_convolution_is_computed_by_other_kernels, other_dtypes_and_a_switched_off_library_do_not_reach_it,
    flags_decide_which_algorithms_are_allowed, each_thread_has_a_handle, a_workspace_and_the_current_stream_are_passed,
)  # fmt: skip

if __name__ == "__main__":
    torch.manual_seed(0)
    {s.__name__: s for s in SCENARIOS}[sys.argv[1]]()
