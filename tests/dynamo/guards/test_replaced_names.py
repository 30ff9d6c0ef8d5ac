"""Functions, classes and methods that a captured program reads may be replaced: a guard notices it.

A row is an expression, and the owner and the name of the replaced object, which is then restored.
"""

from __future__ import annotations

import builtins  # noqa: F401 - the rows read these modules
import cmath  # noqa: F401
import collections  # noqa: F401
import copy  # noqa: F401
import dataclasses
import fractions  # noqa: F401
import functools  # noqa: F401
import inspect  # noqa: F401
import itertools  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import re  # noqa: F401
import statistics  # noqa: F401
import string  # noqa: F401
import sys
import types  # noqa: F401
from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F  # noqa: F401
from eager import nn

items = [3, 1, 2]
layer = nn.Linear(3, 3)


@dataclasses.dataclass
class Record:
    a: int = 1


record = Record()


def helper(x: Any) -> Any:
    return x + 1


ROWS = """
x*math.sqrt(4.) | math | sqrt
x*math.pi | math | pi
x*math.floor(2.5) | math | floor
x*math.prod([2,3]) | math | prod
x*operator.add(1,2) | operator | add
operator.mul(x,2) | operator | mul
x*operator.itemgetter(1)(items) | operator | itemgetter
x*functools.reduce(lambda a,b:a+b,items) | functools | reduce
functools.partial(torch.add,x)(1) | functools | partial
x*len(list(itertools.chain(items,items))) | itertools | chain
x*sum(itertools.islice(items,2)) | itertools | islice
x*sum(a*b for a,b in itertools.product(items,items)) | itertools | product
x*len(items) | builtins | len
x*sum(items) | builtins | sum
x*max(items) | builtins | max
x*abs(-2) | builtins | abs
x*sorted(items)[0] | builtins | sorted
x*isinstance(x,list) | builtins | isinstance
x*round(2.6) | builtins | round
x*getattr(items,'foo',3) | builtins | getattr
x*hasattr(items,'append') | builtins | hasattr
np.sin(x.numpy()) | np | sin
torch.from_numpy(np.array([1.,2.]))+x[0,0] | np | array
x*np.pi | np | pi
x+torch.from_numpy(np.arange(3)) | np | arange
torch.relu(x) | torch | relu
torch.add(x,1) | torch | add
F.relu(x) | F | relu
F.softmax(x,-1) | F | softmax
F.gelu(x) | F | gelu
torch.zeros(3)+x | torch | zeros
x.relu() | torch.Tensor | relu
x.sum() | torch.Tensor | sum
x+1 | torch.Tensor | __add__
x@x.T | torch.Tensor | __matmul__
x.exp() | torch.Tensor | exp
x[0] | torch.Tensor | __getitem__
x.size(0)*x | torch.Tensor | size
x.dim()*x | torch.Tensor | dim
layer(x) | nn.Linear | forward
nn.ReLU()(x) | nn | ReLU
nn.ReLU()(x) | nn.ReLU | forward
layer(x) | nn.Module | __call__
layer(x) | nn.Linear | __call__
layer(x) | nn.Module | _call_impl
x*copy.copy(items)[0] | copy | copy
x*copy.deepcopy(items)[0] | copy | deepcopy
x*cmath.sqrt(4).real | cmath | sqrt
x*len(string.ascii_letters) | string | ascii_letters
x*len(re.sub('a','b','aaa')) | re | sub
x*len(inspect.signature(helper).parameters) | inspect | signature
x*sys.maxsize | sys | maxsize
x*sys.getrecursionlimit() | sys | getrecursionlimit
x*divmod(7,2)[0] | builtins | divmod
x*pow(2,3) | builtins | pow
x*any(items) | builtins | any
x*all(items) | builtins | all
x*min(items) | builtins | min
x*next(iter(items)) | builtins | next
x*callable(items) | builtins | callable
x*hash(3) | builtins | hash
x*ord('a') | builtins | ord
x*issubclass(int,int) | builtins | issubclass
torch.linalg.norm(x) | torch.linalg | norm
torch.fft.fft(x).real | torch.fft | fft
torch.special.erf(x) | torch.special | erf
torch.float32 is x.dtype and x or x*2 | torch | float32
torch.is_tensor(x)*x | torch | is_tensor
torch.get_default_dtype().itemsize*x | torch | get_default_dtype
torch.is_grad_enabled()*x | torch | is_grad_enabled
torch.vmap(lambda a:a+1)(x) | torch | vmap
torch.func.grad(lambda a:a.sum())(x) | torch.func | grad
torch.utils.checkpoint.checkpoint(torch.relu,x,use_reentrant=False) | torch.utils.checkpoint | checkpoint
torch.nn.init.zeros_(x.clone()) | torch.nn.init | zeros_
dataclasses.replace(record,a=3).a*x | dataclasses | replace
types.SimpleNamespace(a=1).a*x | types | SimpleNamespace
torch.cuda.is_available()*x | torch.cuda | is_available
float(fractions.Fraction(1,2))*x | fractions | Fraction
statistics.mean(items)*x | statistics | mean
torch.ops.aten.relu(x) | torch.ops.aten | relu
helper(x) | globals | helper
""".strip().splitlines()


def _replacement(raw: Any) -> Any:
    if isinstance(raw, property) or (not callable(raw) and hasattr(type(raw), "__get__")):
        return property(lambda _: (7,))
    return (lambda *args, **kwargs: 7) if callable(raw) else 7


def _seen_by_the_program_alone(original: Any) -> Any:
    """A replacement of a builtin: the compiler itself needs the original."""
    return lambda *args, **kwargs: 7 if sys._getframe(1).f_code.co_filename == "<row>" else original(*args, **kwargs)


def _outcome(fn: Any) -> Any:
    try:
        result = fn(torch.linspace(-1, 1, 6).reshape(2, 3))
    except Exception as error:
        return type(error).__name__, str(error)
    return result.tolist() if isinstance(result, torch.Tensor | np.ndarray) else result


@pytest.mark.parametrize("row", ROWS)
def test_a_replaced_name_is_noticed(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expression, where, name = (part.strip() for part in row.split("|"))
    namespace = dict(globals())
    exec(compile(f"def f(x): return {expression}", "<row>", "exec"), namespace)
    fn: Any = namespace["f"]
    owner = namespace if where == "globals" else eval(where, namespace)
    compiled = torch.compile(fn, backend="eager")
    before = _outcome(fn)
    assert _outcome(compiled) == before
    raw = owner[name] if owner is namespace else vars(owner).get(name, getattr(owner, name))
    new = _seen_by_the_program_alone(raw) if where == "builtins" else _replacement(raw)
    with monkeypatch.context() as patch:
        if owner is namespace:
            patch.setitem(owner, name, new)
        else:
            patch.setattr(owner, name, new)
        replaced = _outcome(fn), _outcome(compiled)
    assert replaced[0] == replaced[1] != before
    assert _outcome(compiled) == before
