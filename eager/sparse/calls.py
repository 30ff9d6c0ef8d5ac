"""Sparse tensors in calls of torch's functions, and with Python's operators.

Owns the table of functions that accept sparse tensors; the methods and the answer to `__torch_function__` follow from
it. Once a program has made a sparse tensor, functions check their arguments for it (`torch_function`).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from eager._tensor import torch_function
from eager.optable.declaration import is_number
from eager.sparse import arithmetic, geometry
from eager.sparse.tensor import SparseTensor

_LEAVE_ZERO: Final = (
    "abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf "
    "isposinf log1p nan_to_num rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc fix"
)  # fmt: skip
_ELEMENTS: Final = {name: arithmetic.of_elements(name) for name in _LEAVE_ZERO.split()}

# The functions that accept a sparse tensor as any of their arguments, by name.
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **_ELEMENTS,
    **{name: getattr(arithmetic, name) for name in (
        "add add_ sub sub_ mul mul_ div pow neg positive floor_divide mm mv matmul bmm addmm linear smm hspmm sum norm any dist "
        "is_same_size dropout").split()},
    **{name: getattr(geometry, name) for name in (
        "permute transpose t unsqueeze select index_select narrow_copy unbind cat stack hstack vstack to_sparse sparse_mask empty_like "
        "new_empty copy_ sparse_resize_ sparse_resize_and_clear_").split()},
    "subtract": arithmetic.sub, "multiply": arithmetic.mul, "divide": arithmetic.div, "true_divide": arithmetic.div,
    "negative": arithmetic.neg, "concat": geometry.cat, "concatenate": geometry.cat, "row_stack": geometry.vstack,
    "swapaxes": geometry.transpose, "swapdims": geometry.transpose, "to_sparse_coo": geometry.to_sparse,
    "zeros_like": geometry.empty_like, "new_zeros": geometry.new_empty, "spmm": arithmetic.matmul, "dsmm": arithmetic.matmul,
    "hsmm": arithmetic.hspmm,
}  # fmt: skip
for _name in (*_ELEMENTS, "neg", "div", "pow", "t", "transpose"):
    FUNCTIONS[_name + "_"] = arithmetic.in_place(_name + "_", FUNCTIONS[_name])

def _added_to(self: SparseTensor, other: Any) -> Any:
    return arithmetic.add(self, other) if is_number(other) else arithmetic.add(other, self)


_OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "__add__": arithmetic.add, "__sub__": arithmetic.sub, "__mul__": arithmetic.mul, "__truediv__": arithmetic.div,
    "__floordiv__": arithmetic.floor_divide, "__pow__": arithmetic.pow, "__matmul__": arithmetic.matmul,
    "__radd__": _added_to, "__rsub__": lambda self, other: arithmetic.sub(other, self),
    "__rmul__": lambda self, other: arithmetic.mul(other, self), "__rtruediv__": lambda self, other: arithmetic.div(other, self),
    "__rmatmul__": lambda self, other: arithmetic.matmul(other, self),
    "__iadd__": arithmetic.add_, "__isub__": arithmetic.sub_, "__imul__": arithmetic.mul_, "__itruediv__": FUNCTIONS["div_"],
    "__neg__": arithmetic.neg, "__pos__": arithmetic.positive, "__abs__": FUNCTIONS["abs"], "__getitem__": geometry.getitem,
}  # fmt: skip
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: SparseTensor, other: Any) -> Any:
        raise NotImplementedError(f"{name}: comparisons of sparse tensors are not implemented; compare their to_dense()")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _answer(cls: type, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
    """Run one of torch's functions with a sparse tensor among its arguments.

    Raises: NotImplementedError for a function that does not accept it.
    """
    name = getattr(func, "__name__", "")
    fn = FUNCTIONS.get(name)
    if fn is None and args and isinstance(args[0], SparseTensor):
        fn = getattr(SparseTensor, name, None)
    if fn is None or name in _COMPARISONS:
        raise NotImplementedError(f"{torch_function.name_of(func)}: not implemented for sparse tensors; convert the tensor with to_dense()")
    return fn(*args, **(kwargs or {}))


for _name, _fn in FUNCTIONS.items():
    if _name not in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "row_stack", "linear", "dropout", "spmm",
                     "dsmm", "hsmm", "hspmm"):
        setattr(SparseTensor, _name, _fn)
for _name, _fn in _OPERATORS.items():
    setattr(SparseTensor, _name, _fn)
for _name in _COMPARISONS:
    setattr(SparseTensor, f"__{_name}__", _refusing(_name))
for _name, _value in (("__hash__", object.__hash__), ("__torch_function__", classmethod(_answer))):
    setattr(SparseTensor, _name, _value)
