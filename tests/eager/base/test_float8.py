"""8-bit floats can be stored, moved and cast as in torch. Arithmetic on them is refused."""
from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F
from eager.serialization.safetensors import load_safetensors, save_safetensors

_VALUES = [0.0, -0.0, 1.0, 1.1, 440, 448, 449, 464, 465, 500, 1e9, math.inf, -math.inf, math.nan, 1e-3, 1e-4, 2**-9, 2**-10, 2**-16,
           2**-17, 2**-18, 57344.0, 61440, 61439, 240, 247, 248, 249, -3.0]  # fmt: skip
# torch 2.13: torch.tensor(_VALUES).to(dtype).view(torch.uint8)
_BITS = {
    "float8_e4m3fn": [0, 128, 56, 57, 126, 126, 126, 126, 126, 126, 126, 126, 254, 127, 1, 0, 1, 0, 0, 0, 0, 126, 126, 126, 119, 119,
                      120, 120, 196],
    "float8_e5m2": [0, 128, 60, 60, 95, 95, 95, 95, 95, 96, 124, 124, 252, 127, 20, 7, 24, 20, 1, 0, 0, 123, 124, 123, 92, 92, 92, 92,
                    194],
    "float8_e4m3fnuz": [0, 0, 64, 65, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1, 0, 2, 1, 0, 0, 0, 128, 128, 128, 127, 127,
                        128, 128, 204],
    "float8_e5m2fnuz": [0, 0, 64, 64, 99, 99, 99, 99, 99, 100, 128, 128, 128, 128, 24, 11, 28, 24, 2, 1, 0, 127, 128, 127, 96, 96, 96,
                        96, 198],
    "float8_e8m0fnu": [0, 0, 127, 127, 136, 136, 136, 136, 136, 136, 157, 255, 255, 255, 117, 114, 118, 117, 111, 110, 109, 143, 143,
                       143, 135, 135, 135, 135, 129],
}  # fmt: skip
_NAMES = sorted(_BITS)
_NUMBERS = [name for name in _NAMES if name != "float8_e8m0fnu"]  # types with a sign and a zero


def _bits(t: Any) -> list[int]:
    return t.view(torch.uint8).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", _NAMES)
def test_casts_round_as_torch_does(name: str) -> None:
    d = getattr(torch, name)
    x = torch.tensor(_VALUES)
    assert _bits(x.to(d)) == _BITS[name]
    assert _bits(x.double().to(d)) == _BITS[name]
    assert _bits(torch.zeros(len(_VALUES), dtype=d).copy_(x)) == _BITS[name]
    assert _bits(torch.tensor(_VALUES, dtype=d)) == _BITS[name]
    assert _bits(torch.stack([torch.full((), v, dtype=d) for v in _VALUES])) == _BITS[name]


@pytest.mark.parametrize("name", _NAMES)
def test_every_number_survives_a_wider_type(name: str) -> None:
    every = torch.arange(256).to(torch.uint8).view(getattr(torch, name))
    known = ~torch.isnan(every)
    for wide in (torch.float32, torch.float64, torch.bfloat16):
        assert _bits(every.to(wide).to(every.dtype)[known]) == _bits(every[known])


@pytest.mark.parametrize("name", _NAMES)
def test_properties(name: str) -> None:
    d = getattr(torch, name)
    x = torch.tensor([1.0, 2.0, 4.0]).to(d)
    assert d.is_floating_point and not d.is_complex and d.itemsize == x.element_size() == 1
    assert repr(x) == f"tensor([1., 2., 4.], dtype=torch.{name})"
    assert x.tolist() == [1.0, 2.0, 4.0] and type(x[1].item()) is float
    assert x.type() == f"torch.{name.capitalize()}Tensor"
    with pytest.raises(TypeError, match=f"Got unsupported ScalarType {name.capitalize()}"):
        x.numpy()
    with pytest.raises(TypeError, match="couldn't find storage object"):
        torch.set_default_dtype(d)


def test_finfo() -> None:
    info = torch.finfo(torch.float8_e4m3fn)
    assert (info.bits, info.eps, info.max, info.min, info.smallest_normal, info.resolution) == (8, 0.125, 448, -448, 2**-6, 1)
    assert torch.finfo(torch.float8_e5m2).max == 57344 and torch.finfo(torch.float8_e4m3fnuz).max == 240
    assert [torch.finfo(d).resolution for d in (torch.float64, torch.float32, torch.float16, torch.bfloat16)] == [1e-15, 1e-6, 1e-3, 1e-2]


_MOVES: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:], "mask": lambda x: x[torch.tensor([True, False, True, True])], "index": lambda x: x[torch.tensor([2, 0])],
    "index_select": lambda x: x.index_select(0, torch.tensor([3, 3])), "cat": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack([x, x], 1), "roll": lambda x: x.roll(1), "transpose": lambda x: x.view(2, 2).t().contiguous(),
    "expand": lambda x: x[:, None].expand(4, 2).clone(), "repeat": lambda x: x.repeat(2, 2), "chunk": lambda x: x.chunk(2)[1],
    "repeat_interleave": lambda x: x.repeat_interleave(2), "pad": lambda x: F.pad(x, (1, 1)), "abs": torch.abs,
    "embedding": lambda x: F.embedding(torch.tensor([1, 0]), x[:, None]), "diag": torch.diag,
    "where": lambda x: torch.where(x == 2, x, 0.0), "product": lambda x: x * x, "mm": lambda x: x.view(2, 2) @ x.view(2, 2),
    "linear": lambda x: F.linear(x.view(2, 2), x.view(2, 2), x[:2]),
}  # fmt: skip


@pytest.mark.parametrize("name", _NUMBERS)
@pytest.mark.parametrize("move", _MOVES)
def test_defined_ops_agree_with_float32(name: str, move: str) -> None:
    d, wide = getattr(torch, name), torch.tensor([1.0, -2.0, 4.0, 2.0])
    got, want = _MOVES[move](wide.to(d)), _MOVES[move](wide)
    assert got.dtype is d
    torch.testing.assert_close(got.float(), want.to(d).float())


@pytest.mark.parametrize("write", [
    lambda x: x.fill_(3.0), lambda x: x.zero_(), lambda x: x[1:].copy_(torch.tensor([5.0, 6.0])), lambda x: x.__setitem__(0, 7.0),
    lambda x: x.__setitem__(torch.tensor([0, 2]), torch.tensor([2.0, 4.0]).to(x.dtype)), lambda x: x.mul_(x),
])  # fmt: skip
def test_writes(write: Callable[[Any], Any]) -> None:
    wide = torch.tensor([1.0, 2.0, 4.0])
    narrow = wide.to(torch.float8_e5m2)
    write(narrow)
    write(wide)
    assert narrow.tolist() == wide.to(torch.float8_e5m2).tolist()


_UNDEFINED = """add sub div maximum lt pow atan2 neg exp sqrt relu sigmoid sum mean prod amax argmax sort cumsum sign logical_not floor
    nonzero unique reciprocal softmax var norm flip bmm isin""".split()


def _call(op: str, x: Any) -> Any:
    fn = getattr(torch, op)
    if op in ("cumsum", "softmax"):
        return fn(x, 0)
    if op == "flip":
        return fn(x, (0,))
    if op == "bmm":
        return fn(x[None, None], x[None, :, None])
    return fn(x, x) if op in ("add", "sub", "div", "maximum", "lt", "pow", "atan2", "isin") else fn(x)


@pytest.mark.parametrize("op", _UNDEFINED)
def test_calls_that_torch_refuses_are_refused(op: str) -> None:
    x = torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
        _call(op, x)


@pytest.mark.parametrize("make", [lambda d: torch.rand(3, dtype=d), lambda d: torch.randn(3, dtype=d), lambda d: torch.arange(3, dtype=d),
                                  lambda d: torch.empty(3, dtype=d).uniform_()])  # fmt: skip
def test_random_functions_refuse_float8(make: Callable[[Any], Any]) -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e5m2'"):
        make(torch.float8_e5m2)


def test_promotion_is_refused() -> None:
    x, y = torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn), torch.ones(2)
    text = "Promotion for Float8 Types is not supported, attempted to promote "
    for a, b, names in ((x, y, "Float8_e4m3fn and Float"), (y, x, "Float and Float8_e4m3fn"), (x, x.long(), "Float8_e4m3fn and Long"),
                        (x, x.to(torch.float8_e5m2), "Float8_e4m3fn and Float8_e5m2")):  # fmt: skip
        with pytest.raises(RuntimeError, match=text + names):
            a * b
    assert (x[0] + y).tolist() == [2.0, 2.0]  # a number of 0 dims does not decide
    assert torch.result_type(x, 2.5) is x.dtype and torch.can_cast(torch.int64, x.dtype)
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Float8_e4m3fn"):
        torch.result_type(x, 1j)


def test_gradients_pass_through_a_cast() -> None:
    x = torch.tensor([1.0, 500.0, 1.1], requires_grad=True)
    y = x.to(torch.float8_e4m3fn)
    assert y.requires_grad
    (y.float() * torch.tensor([1.0, 2.0, 3.3])).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.25]


@pytest.mark.parametrize("name", _NAMES)
def test_files(name: str, tmp_path: Any) -> None:
    x = torch.tensor([1.0, 2.0, 8.0]).to(getattr(torch, name))
    buffer = io.BytesIO()
    torch.save({"x": x, "tail": x[1:], "dtype": x.dtype}, buffer)
    buffer.seek(0)
    back = torch.load(buffer)
    assert back["dtype"] is x.dtype and _bits(back["x"]) == _bits(x) and _bits(back["tail"]) == _bits(x[1:])
    assert back["x"].untyped_storage().data_ptr() == back["tail"].untyped_storage().data_ptr()
    save_safetensors({"x": x}, tmp_path / "x.safetensors")
    again = load_safetensors(tmp_path / "x.safetensors")["x"]
    assert again.dtype is x.dtype and _bits(again) == _bits(x)


def _quantised(x: Any, w: Any) -> Any:
    scale = w.abs().amax(dim=1, keepdim=True) / 448
    packed = (w / scale).to(torch.float8_e4m3fn)
    kept = torch.cat([packed, packed[:1]])
    return F.linear(x, kept[:-1].to(x.dtype) * scale), kept, kept == packed[0]


def test_compiled_agrees_with_eager() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(4, 16), torch.randn(8, 16)
    want = _quantised(x, w)
    got = torch.compile(_quantised, fullgraph=True)(x, w)
    torch.testing.assert_close(got[0], want[0])
    assert _bits(got[1]) == _bits(want[1]) and got[2].tolist() == want[2].tolist()


def test_compiled_writes_into_an_input() -> None:
    def write(cache: Any, x: Any) -> Any:
        cache[1:3] = x.to(cache.dtype)
        return cache.float() * 2

    x = torch.tensor([[1.0, 600.0], [0.3, -2.0]])
    caches = [torch.zeros(4, 2).to(torch.float8_e4m3fn) for _ in range(2)]
    want, got = write(caches[0], x), torch.compile(write, fullgraph=True)(caches[1], x)
    assert want.tolist() == got.tolist() and _bits(caches[0]) == _bits(caches[1])
    assert caches[0].float()[1].tolist() == [1.0, 448.0]
