"""Tensors in the graph: a node, and a fake with everything except the data."""

from __future__ import annotations

import operator
from typing import Final

from dynamo.guards.sources import AttrSource, LiveSource, Source
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant, is_none
from dynamo.values.protocols import Machine, Value
from dynamo.values.writer import Writer
from eager import Tensor
from eager.nn.parameter import Parameter
from fxir.ir.node import Node

TENSOR_TYPES: Final = frozenset({Tensor, Parameter})

_READS_DATA: Final = frozenset(
    "item tolist numpy __bool__ __int__ __float__ __complex__ __index__ __array__ data_ptr __repr__ __str__ "
    "__contains__ equal allclose".split()
)
_NEEDS_ENGINE: Final = frozenset(
    "backward register_hook register_post_accumulate_grad_hook retain_grad detach_ set_ share_memory_ "
    "untyped_storage storage pin_memory".split()
)
# Methods by which a tensor takes the geometry of a view of itself -> the methods that return the view
_VIEWS_IN_PLACE: Final = {f"{name}_": name for name in "as_strided squeeze swapaxes swapdims t transpose unsqueeze".split()}
_PLAIN_ATTRIBUTES: Final = frozenset(
    "shape dtype device ndim requires_grad is_cuda is_cpu is_meta itemsize nbytes layout is_sparse is_quantized "
    "is_nested is_fake is_mkldnn is_mps is_xpu names output_nr".split()
)
_TENSOR_PROPERTIES: Final = frozenset("T mT H mH real imag data".split())
_NOT_METHODS: Final = _PLAIN_ATTRIBUTES | _TENSOR_PROPERTIES | {"grad"}


class TensorValue(Value):
    """A tensor of the graph.

    node: its place in the graph. fake: metadata, aliasing and history. cls: Tensor or Parameter.
    """

    def __init__(self, node: Node, fake: Tensor, source: Source | None = None, real: Tensor | None = None) -> None:
        self.node = node
        self.fake = fake
        self.source = source
        self.real = real
        self.cls: type = type(real) if real is not None else type(fake)
        self.array: Value | None = None  # the result of its numpy()
        self.became: Became | None = None

    def __repr__(self) -> str:
        return f"TensorValue({self.node.name})"

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"a tensor {self.source.name if self.source else ''} of shape {list(self.fake.shape)}".replace("  ", " ")

    def truth(self, cap: Machine) -> bool:
        if self.fake.numel() != 1:
            cap.host(Tensor.__bool__, self.fake)  # raises what eager raises
        raise Unsupported(causes.DATA_DEPENDENT_BRANCH, f"the truth of {self.describe()}")

    def getattr(self, cap: Machine, name: str) -> Value:
        replaced = cap.recorder.replaced_in_tensor(name, self.cls)
        if replaced is not None:
            return cap.attributes.bind(self, self.cls, name, replaced)
        if name in _PLAIN_ATTRIBUTES:
            return cap.world.wrap_new(getattr(self.fake, name))
        if name in _TENSOR_PROPERTIES:
            return cap.recorder.call(getattr, [self, Constant(name)], {})
        if name == "grad":
            return self._grad(cap)
        if name in ("is_leaf", "grad_fn"):
            return self._history(cap, name)
        if name == "__class__":
            return cap.world.wrap_static(self.cls)
        if name == "__dict__":
            raise Unsupported(causes.TENSOR_ATTRIBUTE, "tensor.__dict__")
        if self.real is not None and name in getattr(self.real, "__dict__", {}):
            assert self.source is not None
            return cap.world.wrap(self.real.__dict__[name], AttrSource(self.source, name))
        if hasattr(Tensor, name):
            if name in _NOT_METHODS or not callable(getattr(Tensor, name)):
                raise Unsupported(causes.TENSOR_ATTRIBUTE, f"{self.describe()}.{name}")
            return TensorMethod(self, name)
        if self.source is not None:
            cap.world.guard("no_attr", self.source, name)
        return cap.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")

    def _grad(self, cap: Machine) -> Value:
        if self.source is None or self.real is None:
            if not self.fake.is_leaf:
                raise Unsupported(causes.AUTOGRAD, "the grad of an intermediate tensor")
            return NONE
        written = cap.effects.attributes_of(self).get("grad")
        if written is not None:
            return written
        grad, source = self.real.grad, AttrSource(self.source, "grad")
        # Every backward pass makes another gradient: the entry fetches it, and does not hold the gradient of the capture.
        return cap.world.wrap(grad, LiveSource(source) if grad is not None and source.is_constant_rooted else source)

    def _history(self, cap: Machine, name: str) -> Value:
        """x.is_leaf or x.grad_fn. No other guard covers these for a tensor from outside."""
        is_leaf = self.fake.is_leaf
        if self.source is not None and self.real is not None:
            is_leaf = self.real.is_leaf
            cap.world.wrap(is_leaf, AttrSource(self.source, "is_leaf"))
        if name == "is_leaf":
            return Constant(is_leaf)
        return NONE if is_leaf else GradFn(self)

    def setattr(self, cap: Machine, name: str, value: Value) -> None:
        if name == "data" and isinstance(value, TensorValue) and _same_memory(self.fake, value.fake):
            return  # the end of `x.data *= y`: the write has happened
        if name == "grad" and is_none(value) and self.source is not None:
            cap.effects.set_attribute(self, "grad", NONE)
            return
        raise Unsupported(causes.TENSOR_ATTRIBUTE, f"{self.describe()}.{name} = ...")

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        replaced = cap.recorder.replaced_in_tensor(name, self.cls)
        if replaced is not None:
            return cap.call(cap.attributes.bind(self, self.cls, name, replaced), args, kwargs)
        if name == "numpy" and not args and not kwargs:
            return cap.arrays.of(self)
        if name in _READS_DATA:
            number = self._read(cap, name) if not (args or kwargs) else None
            if number is not None:
                return number
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f".{name}() of {self.describe()}")
        if name in ("storage_offset", "_is_view") and self._is_over_input(cap):
            raise Unsupported(causes.TENSOR_ATTRIBUTE, f".{name}() of {self.describe()}: no guard compares the place in its memory")
        if name == "requires_grad_":
            return self._requires_grad(cap, args, kwargs)
        if name in _VIEWS_IN_PLACE:
            return self._become(cap, name, args, kwargs)
        if name in _NEEDS_ENGINE:
            raise Unsupported(causes.AUTOGRAD, f".{name}() of {self.describe()}")
        if name == "__len__":
            return cap.world.wrap_new(self.fake.shape[0] if self.fake.ndim else cap.host(len, self.fake))
        if name in ("__hash__", "__format__", "__reduce_ex__", "__deepcopy__"):
            raise Unsupported(causes.IDENTITY, f"{name} of {self.describe()}")
        if name == "__iter__":
            return self.iterate(cap)
        if name == "__setitem__":
            cap.items.set(self, *args)
            return NONE
        if name == "__getitem__":
            return cap.items.get(self, *args)
        if name in ("register_forward_hook", "_set_impl"):
            raise Unsupported(causes.TENSOR_ATTRIBUTE, f".{name}()")
        return cap.recorder.method(name, [self, *args], kwargs)

    def _is_over_input(self, cap: Machine) -> bool:
        """Whether the tensor lies in memory from outside: its fake does not know the address."""
        memory = self.fake.untyped_storage().root
        return any(v.fake.untyped_storage().root is memory for v in cap.recorder.inputs)

    def _read(self, cap: Machine, name: str) -> Value | None:
        """x.item() and related methods as symbols, if symbols are allowed."""
        if name == "tolist":
            return cap.data.list_of(self)
        kinds = {"item": None, "__int__": int, "__float__": float}
        return cap.data.number_of(self, kinds[name]) if name in kinds else None

    def _requires_grad(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [*args, *kwargs.values()]
        wanted = given[0].truth(cap) if given else True
        if wanted == self.fake.requires_grad:
            return self
        if self.source is not None:
            raise Unsupported(causes.AUTOGRAD, f".requires_grad_() of {self.describe()}")
        cap.recorder.effect(set_requires_grad, [self, Constant(wanted)])
        self.born = cap.steps
        return self

    def _become(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """x.unsqueeze_(...) and related methods: x becomes the view.

        The graph breaks for a tensor from outside, where the change would be visible.
        """
        if self.source is not None or self.is_new_leaf or self.node.graph is not cap.graphs.graph or cap.recorder.transforming:
            return cap.recorder.method(name, [self, *args], kwargs)  # the call itself refuses it
        if self.fake.requires_grad and not cap.modes.grad:  # its history does not have the new shape
            raise Unsupported(causes.AUTOGRAD, f".{name}() of {self.describe()} that requires a gradient, without grad mode")
        view = cap.recorder.method(_VIEWS_IN_PLACE[name], [self, *args], kwargs)
        assert isinstance(view, TensorValue)
        if view is not self:
            cap.effects.change(self)
            known = Became(self.node) if self.fake._base is None else self.became
            self.became = None  # without further changes, the output of the graph is the view
            if known is not None:
                self.became = Became(known.node, (*known.calls, (name, tuple(args), dict(kwargs))))
                cap.recorder.became.append(self)
            del cap.recorder.fakes[id(self.fake)]
            self.node, self.fake = view.node, view.fake
            cap.recorder.fakes[id(self.fake)] = self
        return self

    @property
    def is_new_leaf(self) -> bool:
        """Whether the program made the tensor a leaf that requires a gradient: only a graph break gives it a `.grad` to
        fill.
        """
        try:
            return bool(self.fake._requires_grad and self.fake.is_leaf)
        except RuntimeError:  # a view made without gradients whose base was written with gradients: a read of its history raises
            return False

    def iterate(self, cap: Machine) -> Value:
        if self.fake.ndim == 0:
            return cap.raise_(TypeError, "iteration over a 0-d tensor")
        return cap.iteration.sequence_iterator(self.unpack(cap), self)

    def unpack(self, cap: Machine) -> list[Value]:
        if self.fake.ndim == 0:
            cap.raise_(TypeError, "iteration over a 0-d tensor")
        return [cap.recorder.call(operator.getitem, [self, Constant(i)], {}) for i in range(self.fake.shape[0])]

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        if not cg.is_in_main_graph(self.node):
            cg.impossible(self, f"{self.describe()} of a function that runs at another time")
        if self.is_new_leaf:
            cg.impossible(self, f"{self.describe()} that was made to require grad here")
        if self.became is None:
            return cg.graph_output(self.node)
        return self.became.reconstruct(cg, self.fake.requires_grad and not cg.grad_mode)


class Became:
    """The changes by which a tensor became a view of itself.

    The graph returns the tensor before the changes, and generated code repeats them. So the tensor remains the `_base`
    of all views that the program took of it, before and after the changes.

    node: the tensor before the changes. calls: method, arguments of each change.
    """

    def __init__(self, node: Node, calls: tuple[tuple[str, tuple[Value, ...], dict[str, Value]], ...] = ()) -> None:
        self.node = node
        self.calls = calls

    def reconstruct(self, cg: Writer, switched_off: bool) -> str:
        """switched_off: the changes were made in grad mode, and the program has switched it off since."""
        tensor = cg.assign(cg.graph_output(self.node))
        if switched_off:
            cg.statement(f"{cg.helper('set_grad_enabled')}(True)")
        for name, args, kwargs in self.calls:
            given = [*(cg.value(a) for a in args), *(f"{k}={cg.value(v)}" for k, v in kwargs.items())]
            cg.statement(f"{cg.helper('take_view')}({', '.join([tensor, repr(_VIEWS_IN_PLACE[name]), *given])})")
        if switched_off:
            cg.statement(f"{cg.helper('set_grad_enabled')}(False)")
        return tensor


class GradFn(Value):
    """The grad_fn of a tensor. The program can pass it on or compare it with None."""

    def __init__(self, tensor: TensorValue) -> None:
        self.tensor = tensor

    def python_type(self) -> type:
        return type(self.tensor.fake.grad_fn)

    def truth(self, cap: Machine) -> bool:
        return True

    def reconstruct(self, cg: Writer) -> str:
        return f"{cg.value(self.tensor)}.grad_fn"


class TensorMethod(Value):
    """A bound method of a tensor, not yet called."""

    def __init__(self, tensor: TensorValue, name: str) -> None:
        self.tensor = tensor
        self.name = name

    def python_type(self) -> type:
        return type(self.tensor.fake.add)

    def describe(self) -> str:
        return f"method {self.name} of {self.tensor.describe()}"

    def truth(self, cap: Machine) -> bool:
        return True

    def getattr(self, cap: Machine, name: str) -> Value:
        if name == "__self__":
            return self.tensor
        if name == "__name__":
            return Constant(self.name)
        return super().getattr(cap, name)

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.tensor.call_method(cap, self.name, args, kwargs)

    def reconstruct(self, cg: Writer) -> str:
        return f"{cg.value(self.tensor)}.{self.name}"


def set_requires_grad(x: Tensor, required: bool) -> None:
    """The target of nodes for x.requires_grad_(required)."""
    x.requires_grad_(required)


def _same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two fakes have the same elements of one storage in the same order."""
    if a.untyped_storage().root is not b.untyped_storage().root or a.dtype is not b.dtype:
        return False
    return (a.shape, a.stride(), a.storage_offset()) == (b.shape, b.stride(), b.storage_offset())
