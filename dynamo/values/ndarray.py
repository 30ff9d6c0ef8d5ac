"""Arrays and scalars of numpy over tensors of the graph.

An array is a tensor of the graph that the program sees as a numpy array: x.numpy() and x are one value with two
interfaces. numpy itself decides the form of results, by calls on stand-ins (`stand_in`); `dynamo.builtins.numpy.calls`
records the computation.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from dynamo.guards.sources import Source
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import Constant
from dynamo.values.objects import BuiltinMethod
from dynamo.values.protocols import Machine, Value
from dynamo.values.tensor import TensorValue
from dynamo.values.writer import Writer
from eager.base.symint import hint_of

_COMPUTED: Final = frozenset("T mT real imag".split())  # attributes that are views
_NUMBERS: Final = frozenset("item tolist __int__ __float__".split())
_MOST_BYTES: Final = 1 << 31  # the largest stand-in


class NdArrayValue(Value):
    """An ndarray or, if `scalar`, one of numpy's scalars, over the memory of `tensor`.

    source: its place, if it exists outside. writeable: numpy's flag.
    """

    def __init__(self, tensor: TensorValue, source: Source | None = None, *, scalar: bool = False, writeable: bool = True) -> None:
        self.tensor = tensor
        self.source = source
        self.scalar = scalar
        self.writeable = writeable
        self.dtype: np.dtype[Any] = np.dtype(tensor.fake.dtype.numpy)

    def __repr__(self) -> str:
        return f"NdArrayValue({self.tensor.node.name})"

    def python_type(self) -> type:
        return self.dtype.type if self.scalar else np.ndarray

    def describe(self) -> str:
        if self.scalar:
            return f"a numpy.{self.dtype.type.__name__}"
        where = f" {self.source.name}" if self.source is not None else ""
        return f"an ndarray{where} of shape {list(self.tensor.fake.shape)}"

    @property
    def ndim(self) -> int:
        return len(self.tensor.fake.shape)

    def stand_in(self) -> Any:
        """An array or scalar of zeros with the dtype, shape, strides and flags of this value, in separate memory."""
        fake = self.tensor.fake
        shape, strides = tuple(map(hint_of, fake.shape)), tuple(hint_of(s) * self.dtype.itemsize for s in fake.stride())
        span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) // self.dtype.itemsize
        if max(span, math.prod(shape)) * self.dtype.itemsize > _MOST_BYTES:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}, which is too large for a call of numpy at capture")
        made = np.lib.stride_tricks.as_strided(np.zeros(max(span, 1), self.dtype), shape, strides, writeable=self.writeable)
        return made[()] if self.scalar else made

    def fix_sizes(self) -> None:
        """Fix the sizes: the capture depends on each of them from now on."""
        for n in self.tensor.fake.shape:
            int(n)

    def truth(self, cap: Machine) -> bool:
        if hint_of(self.tensor.fake.numel()) != 1:
            cap.host(bool, self.stand_in())  # raises what numpy raises
        raise Unsupported(causes.DATA_DEPENDENT_BRANCH, f"the truth of {self.describe()}")

    def getattr(self, cap: Machine, name: str) -> Value:
        fake = self.tensor.fake
        if name == "shape":
            return cap.world.wrap_new(tuple(fake.shape))
        if name == "strides":
            return cap.world.wrap_new(tuple(s * self.dtype.itemsize for s in fake.stride()))
        if name in ("ndim", "itemsize"):
            return Constant(self.ndim if name == "ndim" else self.dtype.itemsize)
        if name in ("size", "nbytes"):
            return cap.world.wrap_new(fake.numel() * (1 if name == "size" else self.dtype.itemsize))
        if name == "dtype":
            return Constant(self.dtype)
        if name == "__class__":
            return cap.world.wrap_static(self.python_type())
        if name in _COMPUTED:
            return cap.arrays.attribute(self, name)
        found = getattr(self.python_type(), name, None)
        if found is None:
            cap.host(getattr, self.stand_in(), name)  # AttributeError: an ndarray has no instance attributes
        if not callable(found):
            raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name}")
        return BuiltinMethod(self, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__len__":
            fake = self.tensor.fake
            return cap.world.wrap_new(fake.shape[0] if self.ndim else cap.host(len, self.stand_in()))
        if name == "__iter__":
            return self.iterate(cap)
        if name in _NUMBERS and not args and not kwargs:
            return self.tensor.call_method(cap, name, [], {})
        return cap.arrays.method(self, name, args, kwargs)

    def iterate(self, cap: Machine) -> Value:
        return cap.iteration.sequence_iterator(self.unpack(cap), self)

    def unpack(self, cap: Machine) -> list[Value]:
        if self.ndim == 0:
            cap.host(iter, self.stand_in())  # TypeError
        return [cap.arrays.operator(operator.getitem, self, Constant(i)) for i in range(self.tensor.fake.shape[0])]

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        tensor = cg.value(self.tensor)
        if self.scalar:
            return f"{cg.helper('numpy_scalar')}({tensor})"
        return f"{tensor}.numpy()" if self.writeable else f"{cg.helper('read_only')}({tensor})"
