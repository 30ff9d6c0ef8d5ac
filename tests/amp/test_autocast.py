"""Autocast: which precision ops run in, by torch 2.13's lists; its state; its cache; its effect on gradients."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator

import pytest

import eager as torch
from eager.base.spec import TensorSpec, fake
from eager.nn import functional as F
from eager.optable import autocast


@pytest.fixture(autouse=True)
def _nothing_left_on() -> Iterator[None]:
    yield
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
    assert not autocast.cache.casts


def a() -> torch.Tensor:
    return torch.linspace(-1, 1, 12).reshape(3, 4)


def w() -> torch.Tensor:
    return torch.linspace(1, -2, 20).reshape(4, 5).clone().requires_grad_()


def low() -> torch.Tensor:
    """A matrix product, which autocast computes in its low precision."""
    return a() @ w()


# Results of torch 2.13 for the same calls under torch.autocast("cpu"): "low" is the dtype of autocast.
CPU_RESULTS = {
    "matmul": (lambda: a() @ w(), "low"),
    "mm": (lambda: torch.mm(a(), w()), "low"),
    "bmm": (lambda: torch.bmm(a()[None], w()[None]), "low"),
    "addmm": (lambda: torch.addmm(torch.zeros(5), a(), w()), "low"),
    "baddbmm": (lambda: torch.baddbmm(torch.zeros(5), a()[None], w()[None]), "low"),
    "einsum": (lambda: torch.einsum("ij,jk->ik", a(), w()), "low"),
    "tensordot": (lambda: torch.tensordot(a(), w(), 1), "low"),
    "inner": (lambda: torch.inner(a(), a()), "low"),
    "linear": (lambda: torch.nn.Linear(4, 2)(a()), "low"),
    "conv1d": (lambda: torch.nn.Conv1d(3, 2, 2)(a()), "low"),
    "conv2d": (lambda: torch.nn.Conv2d(1, 2, 2)(a()[None, None]), "low"),
    "conv_transpose2d": (lambda: torch.nn.ConvTranspose2d(1, 2, 2)(a()[None, None]), "low"),
    "attention": (lambda: F.scaled_dot_product_attention(a()[None], a()[None], a()[None]), "low"),
    "multihead": (lambda: torch.nn.MultiheadAttention(4, 2)(a(), a(), a())[0], "low"),
    "prelu": (lambda: F.prelu(a(), torch.ones(1)), "low"),
    "lstm": (lambda: torch.nn.LSTM(4, 5)(a())[0], "low"),
    "lstm state": (lambda: torch.nn.LSTM(4, 5)(a())[1][1], "low"),
    "rnn": (lambda: torch.nn.RNN(4, 5)(a())[0], "low"),
    "rnn cell": (lambda: torch.nn.RNNCell(4, 5)(a()), "low"),
    "softmax": (lambda: low().softmax(-1), "low"),
    "sum": (lambda: low().sum(), "low"),
    "exp": (lambda: low().exp(), "low"),
    "layer_norm": (lambda: torch.nn.LayerNorm(5)(low()), "low"),
    "batch_norm": (lambda: torch.nn.BatchNorm1d(5)(low()), "low"),
    "group_norm": (lambda: torch.nn.GroupNorm(1, 5)(low()), "low"),
    "rms_norm": (lambda: torch.nn.RMSNorm(5)(low()), "low"),
    "normalize": (lambda: F.normalize(low()), "low"),
    "norm": (lambda: low().norm(), "low"),
    "mixed product": (lambda: torch.mm(a().bfloat16(), w()), "low"),
    "gru": (lambda: torch.nn.GRU(4, 5)(a())[0], torch.float32),
    "gru cell": (lambda: torch.nn.GRUCell(4, 5)(a()), torch.float32),
    "lstm cell": (lambda: torch.nn.LSTMCell(4, 5)(a())[0], torch.float32),
    "mse": (lambda: F.mse_loss(low(), low()), torch.float32),
    "l1": (lambda: F.l1_loss(low(), low()), torch.float32),
    "cross_entropy": (lambda: F.cross_entropy(low(), torch.tensor([1, 2, 0])), torch.float32),
    "nll": (lambda: F.nll_loss(low(), torch.tensor([1, 2, 0])), torch.float32),
    "bce": (lambda: F.binary_cross_entropy(low().sigmoid(), torch.ones(3, 5)), torch.float32),
    "bce with logits": (lambda: F.binary_cross_entropy_with_logits(low(), low().sigmoid()), torch.float32),
    "kl_div": (lambda: F.kl_div(low(), low().sigmoid(), reduction="batchmean"), torch.float32),
    "prod": (lambda: low().prod(), torch.float32),
    "cdist": (lambda: torch.cdist(a(), a()), torch.float32),
    "trace": (lambda: torch.trace(a().bfloat16()), torch.float32),
    "inverse": (lambda: torch.linalg.inv(torch.eye(3).bfloat16()), torch.float32),
    "cat": (lambda: torch.cat([low(), torch.zeros(3, 5)]), torch.float32),
    "stack": (lambda: torch.stack([low(), torch.zeros(3, 5)]), torch.float32),
    "cat of low": (lambda: torch.cat([low(), low()]), "low"),
    "mv": (lambda: torch.mv(a(), torch.ones(4)), torch.float32),
    "dot": (lambda: torch.dot(torch.ones(3), torch.ones(3)), torch.float32),
    "outer": (lambda: torch.outer(torch.ones(3), torch.ones(4)), torch.float32),
    "bilinear": (lambda: torch.nn.Bilinear(4, 4, 2)(a(), a()), torch.float32),
    "embedding": (lambda: torch.nn.Embedding(3, 4)(torch.tensor([1])), torch.float32),
    "add": (lambda: a() + 1, torch.float32),
    "in place": (lambda: a().add_(1), torch.float32),
    "relu": (lambda: a().relu(), torch.float32),
    "double": (lambda: a().double() @ w().double(), torch.float64),
}


@pytest.mark.parametrize("name", CPU_RESULTS)
def test_ops_run_in_the_precision_of_torchs_cpu_lists(name: str) -> None:
    call, expected = CPU_RESULTS[name]
    with torch.autocast("cpu"):
        assert call().dtype is (torch.bfloat16 if expected == "low" else expected)


def test_float16_on_the_cpu() -> None:
    with torch.autocast("cpu", dtype=torch.float16):
        assert low().dtype is torch.float16 and F.mse_loss(low(), low()).dtype is torch.float32
    assert low().dtype is torch.float32


def on_cuda(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Metadata of a CUDA tensor: ops on it run their meta rules, which need no GPU."""
    return fake(TensorSpec.contiguous(shape, dtype, torch.device("cuda", 0)))


HALF = torch.float16
CUDA_RESULTS = {
    "mm": (lambda x: x @ x, HALF),
    "mv": (lambda x: torch.mv(x, on_cuda(3)), HALF),
    "addmm": (lambda x: torch.addmm(x, x, x), HALF),
    "exp": (lambda x: x.half().exp(), torch.float32),
    "pow": (lambda x: x.half() ** 2, torch.float32),
    "log_softmax": (lambda x: x.half().log_softmax(-1), torch.float32),
    "softmax with a dtype": (lambda x: torch.softmax(x, -1, dtype=torch.float16), HALF),
    "sum": (lambda x: x.half().sum(), torch.float32),
    "sum with a dtype": (lambda x: x.sum(dtype=torch.float16), HALF),
    "cumsum": (lambda x: x.half().cumsum(0), torch.float32),
    "norm": (lambda x: x.half().norm(), torch.float32),
    "layer_norm": (lambda x: F.layer_norm(x.half(), (3,)), torch.float32),
    "group_norm": (lambda x: F.group_norm(x.half(), 3), torch.float32),
    "mse": (lambda x: F.mse_loss(x.half(), x.half()), torch.float32),
    "atan2 promotes": (lambda x: torch.atan2(x.half(), x), torch.float32),
    "atan2 of halves": (lambda x: torch.atan2(x.half(), x.half()), HALF),
    "dot": (lambda x: torch.dot(on_cuda(3).half(), on_cuda(3)), torch.float32),
    "relu": (lambda x: x.half().relu(), HALF),
    "sin": (lambda x: x.half().sin(), HALF),
    "double": (lambda x: x.double() @ x.double(), torch.float64),
}


@pytest.mark.parametrize("name", CUDA_RESULTS)
def test_ops_run_in_the_precision_of_torchs_cuda_lists(name: str) -> None:
    call, expected = CUDA_RESULTS[name]
    torch.set_autocast_enabled("cuda", True)
    try:
        assert torch.is_autocast_enabled() and torch.get_autocast_dtype("cuda") is torch.float16
        assert call(on_cuda(3, 3)).dtype is expected
        assert (a() @ w()).dtype is torch.float32  # autocast for cuda leaves CPU tensors alone
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_binary_cross_entropy_is_refused_on_cuda() -> None:
    torch.set_autocast_enabled("cuda", True)
    try:
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(on_cuda(3), on_cuda(3))
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_gradients_come_in_the_weights_precision() -> None:
    x, weight = a(), w()
    with torch.autocast("cpu"):
        loss = (x @ weight).sum()
    loss.backward()
    assert weight.grad is not None and weight.grad.dtype is torch.float32
    reference = w()
    (x.bfloat16() @ reference.bfloat16()).sum().backward()
    assert torch.equal(weight.grad, reference.grad)


def test_a_weight_is_cast_once_per_block() -> None:
    weight = w()
    with torch.autocast("cpu"):
        first = (a() @ weight).grad_fn.next_functions[1][0]
        second = (a() @ weight).grad_fn.next_functions[1][0]
        assert first is second and len(autocast.cache.casts) == 1
        with torch.autocast("cpu"):
            assert (a() @ weight).grad_fn.next_functions[1][0] is first
        with torch.no_grad():
            a() @ w()  # this cast has no history and must not enter the cache
        assert len(autocast.cache.casts) == 1
        with torch.no_grad():
            weight.mul_(2)
        assert torch.equal(a() @ weight, a().bfloat16() @ weight.bfloat16())  # a write to the weight invalidates the cached cast
    with torch.autocast("cpu", cache_enabled=False):
        assert (a() @ weight).grad_fn.next_functions[1][0] is not (a() @ weight).grad_fn.next_functions[1][0]


def test_blocks_nest_and_restore() -> None:
    with torch.autocast("cpu"):
        assert low().dtype is torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu") and low().dtype is torch.float32
            with torch.autocast("cpu", dtype=torch.float16):
                assert low().dtype is torch.float16 and torch.get_autocast_dtype("cpu") is torch.float16
        assert low().dtype is torch.bfloat16
    with pytest.raises(KeyError), torch.autocast("cpu"):
        raise KeyError
    context = torch.autocast("cpu")
    for _ in range(2):
        with context:
            assert low().dtype is torch.bfloat16
        assert low().dtype is torch.float32


def test_autocast_decorates_functions() -> None:
    @torch.autocast(device_type="cpu")
    def f(x: torch.Tensor) -> torch.Tensor:
        """doc"""
        return x @ x.T

    assert f(a()).dtype is torch.bfloat16 and f.__name__ == "f" and f.__doc__ == "doc" and low().dtype is torch.float32


def test_autocast_is_local_to_the_thread() -> None:
    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(low().dtype))
        thread.start()
        thread.join()
    assert seen == [torch.float32]


def test_an_unsupported_autocast_warns_and_is_disabled_or_raises() -> None:
    with pytest.warns(UserWarning, match="the target dtype is not supported. Disabling autocast"):
        context = torch.autocast("cpu", dtype=torch.float32)
    with context:
        assert low().dtype is torch.float32
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available. Disabling"), torch.autocast("cuda"):
            assert not torch.is_autocast_enabled("cuda")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        torch.autocast("meta")
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        torch.autocast("abacus")


def test_the_older_names_warn() -> None:
    with pytest.warns(FutureWarning, match=r"`torch\.cpu\.amp\.autocast\(args\.\.\.\)` is deprecated"):
        context = torch.cpu.amp.autocast()
    with context:
        assert low().dtype is torch.bfloat16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(torch.cuda.amp.autocast(enabled=False), torch.amp.autocast)


def test_custom_functions_choose_their_precision() -> None:
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x, y):  # type: ignore[no-untyped-def]
            seen.append((x.dtype, torch.is_autocast_enabled("cpu")))
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            seen.append(torch.is_autocast_enabled("cpu"))
            x, y = ctx.saved_tensors
            return g @ y.T, x.T @ g

    class Follows(Product):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, y):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x, y)
            return x @ y

    weight = w()
    with torch.autocast("cpu"):
        y = Product.apply(a().bfloat16(), weight)
        z = Follows.apply(a(), weight)
    assert y.dtype is torch.float32 and z.dtype is torch.bfloat16 and seen == [(torch.float32, False)]
    y.sum().backward()
    z.sum().backward()
    assert seen[1:] == [False, True]
    assert Product.apply(a(), weight).dtype is torch.float32


def test_state_functions() -> None:
    assert torch.amp.is_autocast_available("cpu") and not torch.amp.is_autocast_available("meta")
    assert torch.is_autocast_cache_enabled() and torch.get_autocast_gpu_dtype() is torch.float16
    torch.set_autocast_enabled("cpu", True)
    try:
        assert low().dtype is torch.bfloat16 and torch.is_autocast_cpu_enabled()
        torch.set_autocast_dtype("cpu", torch.float16)
        assert low().dtype is torch.float16
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
