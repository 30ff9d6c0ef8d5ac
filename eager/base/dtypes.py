"""Element types: one singleton each, with torch's names, the promotion lattice over them, and the promotion of an op's arguments.

It depends on numpy's types (with ml_dtypes for bfloat16 and the 8-bit floats), not on tensors.
"""
from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np

from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt


class Category(IntEnum):
    """The order in which promotion compares types: any float beats any integer, and so on."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    COMPLEX = 3


class dtype:  # noqa: N801 - torch's name
    """An element type. `code` is its number in the C structs, `itemsize` its bytes."""

    __slots__ = (
        "name", "code", "itemsize", "numpy", "category", "is_signed", "is_floating_point", "is_complex", "is_integral", "is_float8",
        "in_numpy",
    )  # fmt: skip

    def __init__(self, name: str, code: int, numpy_type: Any, category: Category, signed: bool = True) -> None:
        self.name = name
        self.code = code
        self.numpy = np.dtype(numpy_type)
        self.itemsize = self.numpy.itemsize
        self.is_signed = signed
        self._set_category(category)
        self.is_float8 = category is Category.FLOAT and self.itemsize == 1  # for storage: few ops are defined on it
        self.in_numpy = numpy_type.__module__ == "numpy"  # else of ml_dtypes: numpy's own functions do not know it

    def _set_category(self, category: Category) -> None:
        self.category = category
        self.is_floating_point = category is Category.FLOAT
        self.is_complex = category is Category.COMPLEX
        self.is_integral = category <= Category.INT  # bool too

    def to_real(self) -> dtype:
        return {complex32: float16, complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self) -> dtype:
        if self.is_float8:
            raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(self)}")
        return {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}.get(self, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (by_name, (self.name,))


bool_ = dtype("bool", 0, np.bool_, Category.BOOL, False)
uint8 = dtype("uint8", 1, np.uint8, Category.INT, False)
int8 = dtype("int8", 2, np.int8, Category.INT)
int16 = dtype("int16", 3, np.int16, Category.INT)
int32 = dtype("int32", 4, np.int32, Category.INT)
int64 = dtype("int64", 5, np.int64, Category.INT)
float16 = dtype("float16", 6, np.float16, Category.FLOAT)
bfloat16 = dtype("bfloat16", 7, ml_dtypes.bfloat16, Category.FLOAT)
float32 = dtype("float32", 8, np.float32, Category.FLOAT)
float64 = dtype("float64", 9, np.float64, Category.FLOAT)
complex64 = dtype("complex64", 10, np.complex64, Category.COMPLEX)
complex128 = dtype("complex128", 11, np.complex128, Category.COMPLEX)
uint16 = dtype("uint16", 12, np.uint16, Category.INT, False)
uint32 = dtype("uint32", 13, np.uint32, Category.INT, False)
uint64 = dtype("uint64", 14, np.uint64, Category.INT, False)
float8_e4m3fn = dtype("float8_e4m3fn", 15, ml_dtypes.float8_e4m3fn, Category.FLOAT)
float8_e5m2 = dtype("float8_e5m2", 16, ml_dtypes.float8_e5m2, Category.FLOAT)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", 17, ml_dtypes.float8_e4m3fnuz, Category.FLOAT)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", 18, ml_dtypes.float8_e5m2fnuz, Category.FLOAT)
float8_e8m0fnu = dtype("float8_e8m0fnu", 19, ml_dtypes.float8_e8m0fnu, Category.FLOAT, False)

ALL: tuple[dtype, ...] = (
    bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64,
    complex64, complex128, uint16, uint32, uint64, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu,
)  # fmt: skip


class _NameOnly(dtype):
    """A dtype without tensors, which code may compare and query. Raises: NotImplementedError if a tensor of it is made."""

    __slots__ = ()

    def __init__(self, name: str, itemsize: int, category: Category, signed: bool = True) -> None:
        self.name = name
        self.itemsize = itemsize
        self.is_signed = signed
        self._set_category(category)
        self.is_float8 = self.in_numpy = False

    def _no_tensors(self) -> Any:
        raise NotImplementedError(f"tensors of {self!r} are not implemented; allowed: {', '.join(d.name for d in ALL)}")

    code = numpy = property(_no_tensors)  # type: ignore[assignment]


complex32 = _NameOnly("complex32", 4, Category.COMPLEX)
NAMES_ONLY: tuple[dtype, ...] = (
    complex32, _NameOnly("float4_e2m1fn_x2", 1, Category.FLOAT),
    *(_NameOnly(f"int{bits}", 1, Category.INT) for bits in range(1, 8)),
    *(_NameOnly(f"uint{bits}", 1, Category.INT, False) for bits in range(1, 8)),
)  # fmt: skip
_BY_NUMPY = {d.numpy: d for d in ALL}
_BY_NAME = {d.name: d for d in (*ALL, *NAMES_ONLY)}
ALIASES = {"float": float32, "double": float64, "half": float16, "long": int64, "int": int32, "short": int16,
           "cfloat": complex64, "cdouble": complex128, "chalf": complex32}  # fmt: skip

# Types of Python that torch accepts as a dtype.
OF_PYTHON: dict[type, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}


def meant(given: Any) -> Any:
    """The dtype of a Python type; any other argument unchanged."""
    return OF_PYTHON.get(given, given) if isinstance(given, type) else given


def chosen(given: Any, default: Any) -> Any:
    """The dtype that is given, or `default` for None; Python's types stand for dtypes. Raises TypeError for anything else."""
    if given is None:
        return default
    found = meant(given)
    if not isinstance(found, dtype):
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(given).__name__}")
    return found


def by_name(name: str) -> dtype:
    """The dtype called `name` (without the `torch.` prefix)."""
    return _BY_NAME[name]


def from_numpy(numpy_type: Any) -> dtype:
    """The dtype of a numpy type. Raises: TypeError for a type without a counterpart; ValueError for a foreign byte order."""
    given = np.dtype(numpy_type)
    found = _BY_NUMPY.get(given)
    if found is None:
        if given.newbyteorder("=") in _BY_NUMPY:
            raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is "
                             "currently not supported.")  # fmt: skip
        raise TypeError(f"can't convert np.ndarray of type numpy.{given.type.__name__}. The only supported types are: float64, float32, "
                        "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.")  # fmt: skip
    return found


_SCALAR_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
    "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip


def scalar_name(d: dtype) -> str:
    """The name that torch's error texts give a dtype: float32 is Float, int64 is Long."""
    return _SCALAR_NAMES.get(d.name, d.name.capitalize())


def no_kernel(kernel: str, d: dtype) -> NotImplementedError:
    """torch's error for a kernel that is not written for a dtype. kernel: its name in torch's messages."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(d)}'")


_C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
            "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
            "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}  # fmt: skip


def c_name(d: dtype) -> str:
    """The name of the C++ type that some of torch's error texts give a dtype."""
    return _C_NAMES.get(d.name, d.name)


_default = float32


def option(d: dtype, value: Any) -> Any:
    """A number that a kernel for the dtype `d` takes as an option. Raises RuntimeError for a complex one where `d` is real."""
    if isinstance(value, complex) and not d.is_complex:
        raise RuntimeError(f"value cannot be converted to type {c_name(d)} without overflow")
    return value


def get_default_dtype() -> dtype:
    """The floating type that Python floats become."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Make `d`, a floating type, the dtype of Python floats."""
    global _default
    if d.is_float8:
        raise TypeError(f"couldn't find storage object {scalar_name(d)}Storage")
    if not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d}")
    _default = d


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.is_float8 or b.is_float8:
        raise RuntimeError("Promotion for Float8 Types is not supported, attempted to promote "
                           f"{scalar_name(a)} and {scalar_name(b)}")  # fmt: skip
    if a.category > b.category:
        a, b = b, a
    if b.category is not Category.FLOAT and {a, b} & {uint16, uint32, uint64}:
        raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                           f"{a} and {b}; cast one of them first")  # fmt: skip
    if a.category != b.category:
        if b.category is Category.COMPLEX and a.category is Category.FLOAT:
            return complex128 if float64 in (a, b.to_real()) else complex64
        return b
    if a.category is Category.FLOAT and a.itemsize == b.itemsize == 2:
        return float32  # float16 with bfloat16
    if a.category is Category.INT and a.is_signed != b.is_signed:
        return signed if (signed := a if a.is_signed else b).itemsize > 1 else int16
    return a if a.itemsize >= b.itemsize else b


_TABLE: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that both convert to, as in torch (float16 with bfloat16 is float32).

    Raises: RuntimeError for uint16, uint32 or uint64 with anything but a float, and for an 8-bit float with any other type.
    """
    found = _TABLE.get((type1, type2))
    if found is None:
        found = _TABLE[type1, type2] = _promote(type1, type2)
    return found


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether an in-place result of type `source` may be stored in `target`: no fall in category."""
    if source.category > target.category:
        return False
    return not (source.category is Category.INT and target is bool_)


def of_scalar(value: Any) -> dtype:
    """The type that a Python number has in promotion."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer, SymInt)):
        return int64
    if isinstance(value, (float, np.floating, SymFloat)):
        return _default
    if isinstance(value, (complex, np.complexfloating)):
        return _default.to_complex()
    raise TypeError(f"expected a number, got {type(value).__name__}")


# -- promotion of an op's arguments ---------------------------------------------------------------------------------
def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if higher.category is Category.COMPLEX:
        return higher
    if higher.category is Category.FLOAT:
        return higher.to_complex() if lower.category is Category.COMPLEX else higher
    if higher is bool_ or lower.category >= Category.FLOAT:
        return promote_types(higher, lower)
    return higher


def result_type(*args: Any) -> dtype:
    """The dtype that an op over these tensors and numbers computes in, as torch's `result_type`.

    A number or a 0-d tensor decides only where it is of a higher category than every tensor with dims.
    """
    return _result_type(args)


def _result_type(args: Iterable[Any]) -> dtype:
    dimensioned: dtype | None = None
    zero_dim: dtype | None = None
    number: dtype | None = None
    for a in args:
        if a is None:
            continue
        if hasattr(a, "stride"):
            d = a.dtype
            if a.ndim:
                dimensioned = d if dimensioned is None else promote_types(dimensioned, d)
            else:
                zero_dim = d if zero_dim is None else promote_types(zero_dim, d)
        else:
            d = of_scalar(a)
            number = d if number is None else promote_types(number, d)
    result = _combine(dimensioned, _combine(zero_dim, number))
    if result is None:
        raise ValueError("result_type: no tensor and no number among the arguments")
    return result
