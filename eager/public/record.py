"""`@public`: the facts of a public function beside its body, in one frozen record.

The decorator returns the body unchanged, so that functions of this package call each other without checks. The wrapper for
users is built from the record when a namespace is assembled (`eager.public.wrapper`).
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, NamedTuple, TypeVar, cast

from eager.base.records import dataclass
from eager.optable.declaration import composition
from eager.optable.precision import Precision

F = TypeVar("F", bound=Callable[..., Any])
Orders = Mapping[str, tuple[str, ...]]

# Argument orders from before torch made factors keywords, as in `p.add_(-lr, grad)`: the pattern of the positional arguments
# (t: tensor, n: number), and the keywords that the numbers are now passed by.
ALPHA_BEFORE_TENSOR: Final[Orders] = {"tnt": ("alpha",)}
VALUE_BEFORE_TENSORS: Final[Orders] = {"tntt": ("value",)}
BETA_FIRST: Final[Orders] = {"nttt": ("beta",), "ntntt": ("beta", "alpha"), "tntt": ("beta",), "tnntt": ("beta", "alpha")}


class Out(NamedTuple):
    """How a function whose body takes no `out=` writes its result, a tensor or several, into one."""

    exact: bool = False  # `out=` must have the dtype of the result; else the result is cast
    not_over_itself: bool = False  # RuntimeError for an `out=` with one element in several places, as expanded tensors have
    not_over_inputs: bool = False  # RuntimeError for an `out=` that overlaps an input
    joins: bool = False  # TypeError, not RuntimeError, for an `out=` that the result cannot be cast to
    differentiable: bool = True  # RuntimeError if a gradient is required; False where torch composes the function of recorded ops


@dataclass(frozen=True, slots=True, eq=False)
class Public:
    """The facts of one public function. The wrapper has a step for each fact that differs from its default."""

    name: str = ""  # public name; by default the body's, or the name in the namespace if the body has another
    doc: str = ""  # by default the body's
    out: Out | None = None  # functions only: methods take no `out=`
    axis: bool = False  # numpy's names are taken too: `axis` for dim, `keepdims` for keepdim
    former: Orders = field(default_factory=dict)  # former orders of arguments
    autocast: Precision | None = None
    composed: bool = False  # half-precision inputs are computed in float32 and rounded once, at the end
    copied: bool = False  # the result, a view or a tuple of views, is copied to separate memory
    ints_apart: bool = False  # as a method, the list of ints may be given one by one: `x.squeeze(0, 1)`
    lists_only: bool = False  # as a function, the list of ints may not be given one by one, as `x.flip(0, 1)` may
    ints_are_numbers: bool = False  # an int that no dtype holds is reported as a number, not as a size
    parsed: bool | None = None  # torch's schemas describe the arguments; None: except in nn.functional, which torch writes in Python
    schemas: tuple[str, ...] = ()  # in place of the operator's schemas, if torch parses the arguments by hand
    numbers_as_tensors: bool = False  # numbers may stand for tensors
    interception: str = "classes"  # how `__torch_function__` sees calls; see `torch_function.set_interception`
    kinds: Mapping[str, str] = field(default_factory=dict)  # types of parameters, where neither annotation nor name says them; "": any
    lenient: tuple[str, ...] = ()  # parameters that torch takes any value for


PLAIN: Final = Public()
_records: dict[Any, Public] = {}


class Variant(NamedTuple):
    """A body under another record than its own: an alias that torch treats differently. A value of a namespace's table."""

    body: Callable[..., Any]
    record: Public


def public(**facts: Any) -> Callable[[F], F]:
    """Records the facts of a public function; see `Public` for the names. Returns the body.

    With `composed`, the body that other functions of this package call computes halves in float32 as well.
    """
    record = Public(**facts)

    def keep(body: F) -> F:
        held = cast("F", composition(body)) if record.composed else body
        _records[held] = record
        return held

    return keep


def record_of(body: Any) -> Public:
    """The record of a body; an empty one for a body without `@public`."""
    return _records.get(body, PLAIN)


def variant(body: Callable[..., Any], **facts: Any) -> Variant:
    """The body with some facts of its record replaced."""
    return Variant(body, dataclasses.replace(record_of(body), **facts))
