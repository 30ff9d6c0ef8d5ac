"""Guard operands and observed values as a user reads them.

Owns the text of tensors, modes and objects in guard notes and in reports of failed guards. `kinds` says which kind of guard
uses which text.
"""

from __future__ import annotations

from typing import Any, Final

from dynamo._native import ANY, AT_LEAST_2
from eager import _native as eager_native
from eager import dtype
from eager.base import dtypes, thread_state
from fxir.base.safe_repr import cut, text

DEVICE_TYPES: Final = ("cpu", "cuda", "meta")  # indexed by the device number of the meta word

Operands = tuple[Any, ...]


def listed(operands: Operands) -> str:
    """The operands, separated by commas, in at most 120 characters."""
    return cut(", ".join(map(text, operands)), 120)


def value_text(value: Any) -> str:
    """A value in at most 200 characters."""
    return cut(text(value), 200)


def length(value: Any) -> str:
    """The length of a container."""
    return str(len(value))


def items(value: Any) -> str:
    """The keys of a dict or the elements of a set, in order."""
    return value_text(tuple(value))


def class_of(value: Any) -> str:
    """The name of the class of a value."""
    return type(value).__qualname__


def class_name(operands: Operands) -> str:
    """The name of the class that is the first operand."""
    return str(operands[0].__qualname__)


# --- identity -------------------------------------------------------------------------------------------------


def _has_literal(value: Any) -> bool:
    """Whether the repr of the object identifies the object."""
    return value is None or isinstance(value, bool | dtype)


def expected_object(operands: Operands) -> str:
    """The object that an identity guard expects."""
    wanted = operands[0]
    return repr(wanted) if _has_literal(wanted) else f"the same {type(wanted).__qualname__} object as before"


def other_object(value: Any) -> str:
    """An object that an identity guard does not accept."""
    return repr(value) if _has_literal(value) else f"another {type(value).__qualname__} object"


# --- tensors --------------------------------------------------------------------------------------------------


def _tensor_text(cls: type, dtype_name: str, device_name: str, sizes: Any, strides: Any, requires_grad: bool) -> str:
    layout = "contiguous" if strides is None else f"stride={_dims(strides)}"
    grad = ", requires_grad" if requires_grad else ""
    return f"{cls.__name__}(size={_dims(sizes)}, {layout}, {dtype_name}, {device_name}{grad})"


def _dims(dims: Any) -> str:
    special = {ANY: "any", AT_LEAST_2: "2 or more"}
    return f"({', '.join(special.get(d, str(d)) for d in dims)}{',' if len(dims) == 1 else ''})"


def expected_tensor(operands: Operands) -> str:
    """The tensor that a tensor guard expects. operands: class, meta word, mask, sizes, strides."""
    cls, word, _, sizes, strides = operands
    name = next(d.name for d in dtypes.ALL if d.code == word & 0xFF)
    return _tensor_text(cls, name, DEVICE_TYPES[word >> 8 & 0xFF], sizes, strides, bool(word >> 32 & 1))


def tensor(value: Any) -> str:
    """A tensor, or the class of another object."""
    try:
        return _tensor_text(type(value), value.dtype.name, value.device.type, value.shape, value.stride(), value.requires_grad)
    except AttributeError:
        return f"a {type(value).__qualname__}"


# --- modes of the thread ----------------------------------------------------------------------------------------


def grad_modes() -> int:
    """The modes of the calling thread, as the guard "grad_mode" compares them: bit 0 gradients are recorded, bit 1 inference mode."""
    return eager_native.grad_enabled() | eager_native.inference_mode() << 1


def grad_mode(modes: int) -> str:
    """The modes of `grad_modes` in words."""
    return ("gradients are recorded" if modes & 1 else "no gradients are recorded") + (", inference mode" if modes & 2 else "")


def expected_grad_mode(operands: Operands) -> str:
    """The modes that are the first operand, in words."""
    return grad_mode(operands[0])


def current_grad_mode() -> str:
    """The modes of the calling thread, in words."""
    return grad_mode(grad_modes())


def expected_ambient(operands: Operands) -> str:
    """The autocast state and the default device that are the first operand."""
    return thread_state.describe(operands[0])


def current_ambient() -> str:
    """The autocast state and the default device of the calling thread."""
    return thread_state.describe(thread_state.word())
