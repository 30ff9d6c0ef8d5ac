"""The passes for convolution networks: memory format and folded batch norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager
from eager import nn
from eager.base.spec import is_channels_last
from fxir.ir.graph import Graph, GraphSignature
from fxir.ir.graph_module import GraphModule
from fxir.ir.passes import channels_last, fold_batch_norm
from fxir.ir.verifier import verify
from tests.fxir.test_passes import names, traced


def _conv(x: Any, w: Any) -> Any:
    return eager.nn.functional.conv2d(x, w, padding=1)


def _chain(x: Any, w: Any) -> Any:
    y = _conv(x, w).relu()
    return _conv(y, w) + y


def _flat(x: Any, w: Any) -> Any:
    y = _conv(x, w)
    return y.reshape(y.shape[0], -1) * 2


def _strided(x: Any, w: Any) -> Any:
    y = _conv(x, w)
    return eager.as_strided(y, (2, 3), (5, 2), 1) + 1


def _pooled(x: Any, w: Any) -> Any:
    y = eager.nn.functional.max_pool2d(_conv(x, w), 2)
    return y, y.permute(0, 2, 3, 1).contiguous(), y.mean((2, 3))


PROGRAMS: list[Callable[..., Any]] = [_conv, _chain, _flat, _strided, _pooled]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("last", [False, True])
def test_results_and_their_strides_do_not_change(program: Callable[..., Any], last: bool) -> None:
    x, w = eager.randn(2, 4, 6, 5), eager.randn(4, 4, 3, 3)
    if last:
        x = x.contiguous(memory_format=eager.channels_last)
    graph = traced(program, x, w)
    expected = GraphModule(graph.root, graph)(x, w)
    channels_last(graph)
    verify(graph, functional=True, specs=True)
    found = GraphModule(graph.root, graph)(x, w)
    for a, b in zip(found, expected, strict=True):
        assert a.stride() == b.stride()
        assert eager.allclose(a, b, atol=1e-5)


def test_only_the_borders_of_a_network_are_copied() -> None:
    graph = traced(_chain, eager.randn(2, 4, 6, 5), eager.randn(4, 4, 3, 3))
    assert channels_last(graph) > 0
    assert names(graph).count("clone") == 2  # the input and the output
    convolutions = [n for n in graph.in_order() if getattr(n.target, "name", "") == "convolution"]
    assert all(is_channels_last(n.info.spec) for n in convolutions)


def test_a_network_in_the_format_does_not_change() -> None:
    x = eager.randn(2, 4, 6, 5).contiguous(memory_format=eager.channels_last)
    graph = traced(_chain, x, eager.randn(4, 4, 3, 3))
    assert channels_last(graph) == 0


def test_images_without_a_convolution_do_not_change() -> None:
    assert channels_last(traced(lambda x: eager.nn.functional.max_pool2d(x, 2), eager.randn(2, 4, 6, 6))) == 0


# -- folded batch norm -------------------------------------------------------------------------------------------


def _network(groups: int, transposed: bool, bias: bool) -> nn.Sequential:
    conv = nn.ConvTranspose2d if transposed else nn.Conv2d
    norm = nn.BatchNorm2d(6)
    norm.running_mean.copy_(eager.randn(6))
    norm.running_var.copy_(eager.rand(6) + 0.5)
    return nn.Sequential(conv(4, 6, 3, groups=groups, bias=bias), norm, nn.ReLU()).eval()


def _traced_inference(model: nn.Module, x: Any) -> tuple[Graph, list[Any]]:
    """The graph of a call, with the tensors of the model as parameters."""
    held = [*model.parameters(), *(b for b in model.buffers() if b.dtype.is_floating_point)]

    def call(x: Any, *tensors: Any) -> Any:
        conv, norm = model[0], model[1]
        weight, *rest = tensors
        bias = rest.pop(0) if conv.bias is not None else None
        gamma, beta, mean, var = rest
        function = eager.nn.functional.conv_transpose2d if isinstance(conv, nn.ConvTranspose2d) else eager.nn.functional.conv2d
        y = function(x, weight, bias, groups=conv.groups)
        return eager.nn.functional.batch_norm(y, mean, var, gamma, beta, eps=norm.eps).relu()

    with eager.no_grad():
        graph = traced(call, x, *held)
    graph.signature = GraphSignature((), 1, 0, tuple(range(1, 1 + len(held))), may_write=True)
    return graph, held


@pytest.mark.parametrize("groups,transposed", [(1, False), (2, False), (1, True), (2, True)])
@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_after_a_convolution_becomes_part_of_its_weight(groups: int, transposed: bool, bias: bool) -> None:
    model, x = _network(groups, transposed, bias), eager.randn(2, 4, 6, 5)
    graph, held = _traced_inference(model, x)
    assert fold_batch_norm(graph) == (0 if transposed and groups == 2 else 1)
    verify(graph, functional=True, specs=True)
    with eager.no_grad():
        (found,) = GraphModule(graph.root, graph)(x, *held)
        assert eager.allclose(found, model(x), atol=1e-5)
    images = [n for n in graph.in_order() if getattr(n.target, "name", "") == "mul" and n.info.spec.shape[0] == 2]
    assert not images or (transposed and groups == 2)


def test_a_scale_that_is_an_argument_is_not_folded() -> None:
    x, w, s = eager.randn(2, 4, 6, 5), eager.randn(4, 4, 3, 3), eager.randn(1, 4, 1, 1)
    graph = traced(lambda x, w, s: _conv(x, w) * s, x, w, s)
    graph.signature = GraphSignature((), 1, 0, (1,), may_write=True)
    assert fold_batch_norm(graph) == 0


def test_a_convolution_with_another_reader_is_not_folded() -> None:
    def both(x: Any, w: Any, s: Any) -> Any:
        y = _conv(x, w)
        return y * s + y.sum()

    graph = traced(both, eager.randn(2, 4, 6, 5), eager.randn(4, 4, 3, 3), eager.randn(1, 4, 1, 1))
    graph.signature = GraphSignature((), 1, 0, (1, 2), may_write=True)
    assert fold_batch_norm(graph) == 0
