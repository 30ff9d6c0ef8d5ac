"""assert_close against the texts of torch 2.13, and make_tensor."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import eager as torch

# ruff: noqa: E501
# expression, class of the error ("" for none), its text in torch 2.13
CASES = [
    ('ac(T([1.,2.,3.]),T([1.,3.,3.]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 3 (33.3%)\n'
     'Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.3333333432674408 at index (1,) (up to 1.3e-06 allowed)'),
    ('ac(T([1,2]),T([1,3]))', 'AssertionError',
     'Tensor-likes are not equal!\n'
     '\n'
     'Mismatched elements: 1 / 2 (50.0%)\n'
     'Greatest absolute difference: 1 at index (1,)\n'
     'Greatest relative difference: 0.3333333432674408 at index (1,)'),
    ('ac(T(1.),T(2.))', 'AssertionError',
     'Scalars are not close!\n'
     '\n'
     'Expected 2.0 but got 1.0.\n'
     'Absolute difference: 1.0 (up to 1e-05 allowed)\n'
     'Relative difference: 0.5 (up to 1.3e-06 allowed)'),
    ('ac(1.0,2.0)', 'AssertionError',
     'Scalars are not close!\n'
     '\n'
     'Expected 2.0 but got 1.0.\n'
     'Absolute difference: 1.0 (up to 1e-07 allowed)\n'
     'Relative difference: 0.5 (up to 1e-07 allowed)'),
    ('ac(1,2)', 'AssertionError',
     'Scalars are not equal!\n'
     '\n'
     'Expected 2 but got 1.\n'
     'Absolute difference: 1\n'
     'Relative difference: 0.5'),
    ('ac(True,False)', 'AssertionError', 'Booleans mismatch: True is not False'),
    ('ac(T([1.]),T([1.,2.]))', 'AssertionError', "The values for attribute 'shape' do not match: torch.Size([1]) != torch.Size([2])."),
    ('ac(T([1.]),T([1],dtype=torch.float64))', 'AssertionError', "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."),
    ('ac(T([1.,nan]),T([1.,nan]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 2 (50.0%)\n'
     'Greatest absolute difference: nan at index (1,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: nan at index (1,) (up to 1.3e-06 allowed)'),
    ('ac(T([1.,nan]),T([1.,nan]),equal_nan=True)', '', ''),
    ('ac([T([1.]),T([2.])],[T([1.]),T([3.])])', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.3333333432674408 at index (0,) (up to 1.3e-06 allowed)\n'
     '\n'
     'The failure occurred for item [1]'),
    ("ac({'a':T([1.])},{'a':T([2.])})", 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.5 at index (0,) (up to 1.3e-06 allowed)\n'
     '\n'
     "The failure occurred for item ['a']"),
    ("ac({'a':T([1.])},{'b':T([2.])})", 'AssertionError',
     'The keys of the mappings do not match:\n'
     "Missing keys in the actual mapping: ['b']\n"
     "Additional keys in the actual mapping: ['a']"),
    ('ac([1.],[1.,2.])', 'AssertionError', 'The length of the sequences mismatch: 1 != 2'),
    ('ac(None,None)', '', ''),
    ('ac(None,T(1.))', 'AssertionError', 'None mismatch: None is not 1.0'),
    ("ac('a','a')", 'TypeError', "No comparison pair was able to handle inputs of type <class 'str'> and <class 'str'>."),
    ('ac(np.array([1.]),np.array([2.]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,) (up to 1e-07 allowed)\n'
     'Greatest relative difference: 0.5 at index (0,) (up to 1e-07 allowed)'),
    ('ac(T([1.]),T([2.]),rtol=0.1)', 'ValueError', "Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."),
    ('ac(T([1.]),T([2.]),rtol=0.1,atol=0.1)', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,) (up to 0.1 allowed)\n'
     'Greatest relative difference: 0.5 at index (0,) (up to 0.1 allowed)'),
    ('ac(T([1.]),T([2.]),rtol=0,atol=0)', 'AssertionError',
     'Tensor-likes are not equal!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,)\n'
     'Greatest relative difference: 0.5 at index (0,)'),
    ("ac(T([1.]),T([2.]),msg='my text')", 'AssertionError', 'my text'),
    ("ac(T([1.]),T([2.]),msg=lambda m:'head\\n'+m)", 'AssertionError',
     'head\n'
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.5 at index (0,) (up to 1.3e-06 allowed)'),
    ('ac(T([[1.,2.],[3.,5.]]),T([[1.,2.5],[3.,4.]]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 2 / 4 (50.0%)\n'
     'Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.25 at index (1, 1) (up to 1.3e-06 allowed)'),
    ('ac(T([1.+2j]),T([1.+3j]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.3162277638912201 at index (0,) (up to 1.3e-06 allowed)'),
    ('ac(T([True,False]),T([True,True]))', 'AssertionError',
     'Tensor-likes are not equal!\n'
     '\n'
     'Mismatched elements: 1 / 2 (50.0%)\n'
     'Greatest absolute difference: 1 at index (1,)\n'
     'Greatest relative difference: 1.0 at index (1,)'),
    ('ac(T([[1.,2.]]).t().contiguous().t(),T([[1.,2.]]),check_stride=True)', '', ''),
    ('ac(torch.ones(2,3).t(),torch.ones(3,2),check_stride=True)', 'AssertionError', "The values for attribute 'stride()' do not match: (1, 3) != (2, 1)."),
    ('ac(T([1.,inf]),T([1.,-inf]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 2 (50.0%)\n'
     'Greatest absolute difference: inf at index (1,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: nan at index (1,) (up to 1.3e-06 allowed)'),
    ('ac(T([inf]),T([inf]))', '', ''),
    ('ac(T([1],dtype=torch.int32),T([1.]),check_dtype=False)', '', ''),
    ('ac(T([1],dtype=torch.uint8),T([3],dtype=torch.uint8))', 'AssertionError',
     'Tensor-likes are not equal!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 2 at index (0,)\n'
     'Greatest relative difference: 0.6666666865348816 at index (0,)'),
    ('ac(T([]),T([]))', '', ''),
    ("ac({'a':[T(1.),T([2.,5.])]},{'a':[T(1.),T([2.,4.])]})", 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 2 (50.0%)\n'
     'Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.25 at index (1,) (up to 1.3e-06 allowed)\n'
     '\n'
     "The failure occurred for item ['a'][1]"),
    ("ac(T([1.],device='meta'),T([1.]))", 'AssertionError', "The values for attribute 'device' do not match: meta != cpu."),
    ('ac(1.0, 1)', 'AssertionError', "The (d)types do not match: <class 'float'> != <class 'int'>."),
    ('ac(1.0,1.0+1e-7)', '', ''),
    ('ac(1.0+2j,1.0+1j)', 'AssertionError',
     'Scalars are not close!\n'
     '\n'
     'Expected (1+1j) but got (1+2j).\n'
     'Absolute difference: 1.0 (up to 1e-07 allowed)\n'
     'Relative difference: 0.7071067811865475 (up to 1e-07 allowed)'),
    ('old(T([1.]),T([2.]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.5 at index (0,) (up to 0.0001 allowed)'),
    ('ac(T([1e-9]),T([0.]))', '', ''),
    ('ac(T([0.]),T([1e-3]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 0.0010000000474974513 at index (0,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 1.0 at index (0,) (up to 1.3e-06 allowed)'),
    ('ac(T([1.,2.,3.,4.]*3).half(),T([1.,2.,3.,5.]*3).half())', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 3 / 12 (25.0%)\n'
     'Greatest absolute difference: 1.0 at index (3,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 0.199951171875 at index (3,) (up to 0.001 allowed)'),
    ('ac(T([3000000000]),T([-3000000000]))', 'AssertionError',
     'Tensor-likes are not equal!\n'
     '\n'
     'Mismatched elements: 1 / 1 (100.0%)\n'
     'Greatest absolute difference: 6000000000 at index (0,)\n'
     'Greatest relative difference: 2.0 at index (0,)'),
    ('ac(T([nan,1.]),T([1.,2.]),equal_nan=True)', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 2 / 2 (100.0%)\n'
     'Greatest absolute difference: nan at index (0,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: nan at index (0,) (up to 1.3e-06 allowed)'),
    ('ac(torch.zeros(2,2).expand(2,2),torch.zeros(4))', 'AssertionError', "The values for attribute 'shape' do not match: torch.Size([2, 2]) != torch.Size([4])."),
    ('ac((T(1.),),[T(1.)])', '', ''),
    ('ac(object(),object())', 'TypeError', "No comparison pair was able to handle inputs of type <class 'object'> and <class 'object'>."),
    ('ac(T([0.,0.]),T([0.,5.]))', 'AssertionError',
     'Tensor-likes are not close!\n'
     '\n'
     'Mismatched elements: 1 / 2 (50.0%)\n'
     'Greatest absolute difference: 5.0 at index (1,) (up to 1e-05 allowed)\n'
     'Greatest relative difference: 1.0 at index (1,) (up to 1.3e-06 allowed)'),
    ('ac(np.float32(1),np.float32(2))', 'AssertionError',
     'Scalars are not close!\n'
     '\n'
     'Expected 2.0 but got 1.0.\n'
     'Absolute difference: 1.0 (up to 1e-07 allowed)\n'
     'Relative difference: 0.5 (up to 1e-07 allowed)'),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "error", "text"), CASES, ids=[case[0] for case in CASES])
def test_assert_close_raises_torchs_messages(expression: str, error: str, text: str) -> None:
    names = {"torch": torch, "np": np, "T": torch.tensor, "ac": torch.testing.assert_close, "old": torch.testing.assert_allclose,
             "inf": math.inf, "nan": math.nan}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not error:
            eval(expression, names)
            return
        with pytest.raises((AssertionError, TypeError, ValueError)) as caught:
            eval(expression, names)
    assert type(caught.value).__name__ == error and str(caught.value) == text


def test_values_that_cannot_be_compared_are_named() -> None:
    with pytest.raises(TypeError, match=r"No comparison pair was able to handle inputs of type .*Tensor'> and <class 'list'>"):
        torch.testing.assert_close(torch.ones(1), [1.0])


def test_subclasses_are_compared_unless_refused() -> None:
    p = torch.nn.Parameter(torch.ones(2))
    torch.testing.assert_close(p, torch.ones(2))
    with pytest.raises(TypeError, match="Parameter"):
        torch.testing.assert_close(p, torch.ones(2), allow_subclasses=False)


def test_the_older_name_warns() -> None:
    with pytest.warns(FutureWarning, match="assert_close"):
        torch.testing.assert_allclose(torch.ones(2), [1.0, 1.0])


DEFAULTS = {"bool": (0, 2), "uint8": (0, 10), "int8": (-9, 10), "int64": (-9, 10), "float16": (-9, 9), "bfloat16": (-9, 9),
            "float32": (-9, 9), "float64": (-9, 9)}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_make_tensor_draws_from_the_whole_range(name: str) -> None:
    torch.manual_seed(1)
    d, (low, high) = getattr(torch, name), DEFAULTS[name]
    t = torch.testing.make_tensor(40, 50, dtype=d, device="cpu")
    values = t.to(torch.float64)
    assert t.dtype is d and t.shape == (40, 50) and t.is_contiguous()
    inside = values <= high if d.is_floating_point else values < high
    assert bool((values >= low).all()) and bool(inside.all())
    width = high - low
    assert values.min() < low + 0.1 * width + 1e-9 and values.max() >= high - 0.1 * width - 1
    assert abs(values.mean().item() - (low + high - (not d.is_floating_point)) / 2) < 0.03 * width


def test_make_tensor_takes_bounds_and_layouts() -> None:
    make = torch.testing.make_tensor
    t = make((3, 4), dtype=torch.float32, device="cpu", low=2, high=2.5, noncontiguous=True, requires_grad=True)
    assert not t.is_contiguous() and t.requires_grad and t.is_leaf and bool(((t >= 2) & (t < 2.5)).all())
    assert not bool((make(1000, dtype=torch.int64, device="cpu", low=-1, high=2, exclude_zero=True) == 0).any())
    c = make(2, 3, dtype=torch.complex64, device="cpu")
    assert c.dtype is torch.complex64 and c.shape == (2, 3)
    assert make(2, 3, 4, 5, dtype=torch.float32, device="cpu", memory_format=torch.channels_last).is_contiguous(
        memory_format=torch.channels_last)  # fmt: skip
    extremes = make(100, dtype=torch.float32, device="cpu", low=-math.inf, high=math.inf)
    assert bool(torch.isfinite(extremes).all()) and extremes.abs().max() > 1e37
    assert make((), dtype=torch.float32, device="cpu").shape == () and make(0, dtype=torch.int8, device="cpu").numel() == 0


@pytest.mark.parametrize(
    "options",
    [{"low": 3, "high": 2}, {"low": math.nan}, {"low": 5, "high": 5, "dtype": torch.int64}, {"low": 300, "dtype": torch.uint8},
     {"noncontiguous": True, "memory_format": torch.channels_last}],
)  # fmt: skip
def test_make_tensor_refuses_unsupported_arguments(options: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        torch.testing.make_tensor(2, 3, **{"dtype": torch.float32, "device": "cpu", **options})
