"""An argument of a wrong type raises a TypeError that names the argument, regardless of the error that the body raises.

Other errors stay unchanged.
"""
from __future__ import annotations

import pickle
import types
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager import fft  # noqa: F401 - reached as `torch.fft`
from eager.nn import functional as F  # noqa: N812 - torch's name

X = torch.ones(2, 3)
WRONG: list[tuple[Any, tuple[Any, ...], str]] = [
    (torch.softmax, (3,), r"softmax\(\): argument 'input' \(position 1\) must be Tensor, not int"),
    (torch.softmax, (X, "a"), r"argument 'dim' \(position 2\) must be int, not str"),
    (torch.softmax, (X, 0.5), r"argument 'dim' \(position 2\) must be int, not float"),
    (torch.sort, (None,), r"argument 'input' \(position 1\) must be Tensor, not NoneType"),
    (torch.argsort, (np.ones(2),), r"argument 'input' \(position 1\) must be Tensor, not ndarray"),
    (torch.flatten, ([X],), r"argument 'input' \(position 1\) must be Tensor, not list"),
    (torch.block_diag, (X, 1), r"argument 'tensors' \(position 2\) must be tuple of Tensors, not int"),
    (torch.permute, (X,), r"permute\(\) missing 1 required positional arguments"),
    (F.conv2d, (X, 7), r"conv2d\(\) received an invalid combination of arguments - got \(Tensor, int\), but expected one of"),
    (F.max_pool2d, (X[None], "a"), r"argument 'kernel_size' \(position 2\) must be tuple of ints, not str"),
    (torch.linalg.norm, (1,), r"must be Tensor, not int"), (torch.fft.fftshift, ([1],), r"must be Tensor, not list"),
    (torch.Tensor.softmax, (X, "a"), r"argument 'dim' \(position 2\) must be int, not str"),
]  # fmt: skip
RIGHT: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (torch.softmax, (X, 5), IndexError, "Dimension out of range"),
    (torch.lerp, (X, torch.ones(4), 0.5), RuntimeError, "size of tensor"),
    (torch.reshape, (X, (4,)), RuntimeError, "invalid for input of size"),
    (torch.var, (torch.ones(3, dtype=torch.int64), False), RuntimeError, "floating point"),
    (F.conv2d, (X, X), RuntimeError, "Expected 3D"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "args", "text"), WRONG)
def test_a_wrong_type_is_named(fn: Any, args: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        fn(*args)


@pytest.mark.parametrize(("fn", "args", "error", "text"), RIGHT)
def test_an_error_over_right_types_is_left_alone(fn: Any, args: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        fn(*args)


def test_a_refused_draw_leaves_the_generator_usable() -> None:
    state = torch.get_rng_state()
    try:
        with pytest.raises(ValueError, match="Overflow when unpacking"):
            torch.randperm(2**63)
        torch.default_generator._offset = 2**64 - 2
        assert torch.randn(4).isfinite().all() and torch.randperm(5).sort()[0].tolist() == [0, 1, 2, 3, 4]
    finally:
        torch.set_rng_state(state)


def test_warnings_name_the_line_of_the_caller() -> None:
    calls = [lambda: F.softmax(X), lambda: F.mse_loss(X, X[:1]), lambda: torch.exp(X, out=torch.ones(2)),
             lambda: torch.nn.Softmax()(X), lambda: torch.where(torch.ones(2, dtype=torch.uint8), 1, 2)]  # fmt: skip
    for call in calls:
        with pytest.warns(UserWarning) as caught:
            call()
        assert {w.filename for w in caught} == {__file__}


def test_none_is_accepted_where_it_is_allowed() -> None:
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        F.batch_norm(torch.ones(1, 3), None, None, training=True)


@pytest.mark.parametrize("module", [torch, F, torch.linalg, fft, torch.special], ids=lambda m: m.__name__)
def test_public_functions_pickle_by_name(module: Any) -> None:
    """Modules have functions as attributes (`self.act = F.gelu`). A wrapper that has the name of its function cannot pickle."""
    functions = {name: fn for name, fn in vars(module).items() if isinstance(fn, types.FunctionType) and not name.startswith("_")}
    lost = []
    for name, fn in functions.items():
        try:
            if pickle.loads(pickle.dumps(fn)) is not fn:
                lost.append(name)
        except (pickle.PicklingError, AttributeError):
            lost.append(name)
    assert functions and not lost


@pytest.mark.parametrize(("call", "what"), [
    (lambda x: F.dropout(x, 0.0, "a"), "must be bool, not str"), (lambda x: torch.combinations(x[0], 2, 1), "must be bool, not int"),
    (lambda x: torch.diff(x, True), "must be int, not bool"), (lambda x: torch.tril(x, 2.5), "must be int, not float"),
    (lambda x: x.select(0, True), "must be int, not bool"), (lambda x: torch.unique(x, return_counts="a"), "must be bool, not str"),
])  # fmt: skip
def test_flags_and_whole_numbers_keep_their_types(call: Any, what: str) -> None:
    with pytest.raises(TypeError, match=what):
        call(torch.ones(2, 3))


def test_flags_that_torch_reads_in_python_accept_any_object() -> None:
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x, "yes").tolist() == x.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("call", [
    lambda x: torch.clamp_min(x, 1.0, out=torch.empty(2).expand(3, 2)),
    lambda x: torch.gather(x[1:], 0, torch.zeros(2, 2).long(), out=x[:-1]),
    lambda x: torch.sgn(x[1:], out=x[:-1]),
])  # fmt: skip
def test_outputs_over_memory_that_is_read_are_refused(call: Any) -> None:
    with pytest.raises(RuntimeError, match=r"refers? to a single memory location"):
        call(torch.ones(3, 2))
