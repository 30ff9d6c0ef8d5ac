"""`torch.utils.flop_counter`: floating-point operations of the products, convolutions and attentions in a block.

A multiplication and its addition count as two; pointwise ops are not counted. `TorchDispatchMode` provides the ops,
which are counted under the names of torch's operator library (`torch.ops.aten.mm`), once for every running module.
Differs from torch in
ops for which torch has no formula: matrix-vector products count as `mm`, recurrent cells as their products, attention
on any device. A product with an addend counts under the product's name. The backward of a grouped convolution counts
two convolutions, each with as many operations as forward.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Final

from eager._ops import OpOverloadPacket, ops
from eager._tensor.tensor import Tensor
from eager.optable.attention import sdpa_backward_flop_count as sdpa_backward_flop_count
from eager.optable.attention import sdpa_flop_count as sdpa_flop_count
from eager.optable.conv import conv_flop
from eager.optable.conv import conv_flop_count as conv_flop_count
from eager.optable.matmul import bmm_flop, mm_flop
from eager.optable.table import Op
from eager.utils._python_dispatch import TorchDispatchMode
from eager.utils._pytree import tree_map
from eager.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = Sequence[int]
Formula = Callable[..., int]

_ATEN: Final = ops.aten
# Formula of each operator, called with the operator's arguments and its result as `out_val=`.
flop_registry: Final[dict[Any, Formula]] = {}


def get_shape(value: Any) -> Any:
    """The shape of a tensor; any other value unchanged."""
    return value.shape if isinstance(value, Tensor) else value


def shape_wrapper(formula: Formula) -> Formula:
    """Convert a formula over shapes (with `out_shape=`) into one over tensors (with `out_val=`)."""

    @wraps(formula)
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes, named, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return formula(*shapes, out_shape=out_shape, **named)

    return of_tensors


def _as_registered(formula: Formula, get_raw: bool) -> Formula:
    return formula if get_raw else shape_wrapper(formula)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Decorator: count `targets`, one or several operators of `torch.ops.aten`, with the function.

    The function takes the operator's arguments, with shapes in place of tensors and the result's shape as `out_shape`;
    with get_raw, tensors and the result as `out_val`.
    Raises: ValueError for a target that is not an operator; RuntimeError for an operator that already has a formula.
    """

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                                 f"torch.ops.mylib.foo), got {target} which is of type {type(target)}")  # fmt: skip
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = _as_registered(formula, get_raw)
        return formula

    return register


register_flop_formula(_ATEN.mm)(mm_flop)
register_flop_formula(_ATEN.bmm)(bmm_flop)
register_flop_formula(_ATEN.convolution)(conv_flop)


@register_flop_formula(_ATEN.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of the product of an addmm."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(_ATEN.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of the product of a baddbmm."""
    return bmm_flop(a_shape, b_shape)


# Ops that are reported under another name of torch's library, and counted by the formula of their declaration.
_REPORTED_AS: Final = {"attention": _ATEN.scaled_dot_product_attention, "attention_backward": _ATEN.scaled_dot_product_attention,
                       "conv_weight": _ATEN.convolution_backward}  # fmt: skip


def _of_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[str, tuple[Tensor, ...]]:
    """The product in torch's library that corresponds to a linear map, with all leading dims joined."""
    out, into = weight.shape
    both = x.new_empty((x.numel() // max(into, 1), into), device="meta"), weight.new_empty((into, out), device="meta")
    return ("mm", both) if bias is None else ("addmm", (bias, *both))


class FlopCounterMode:
    """Counts the operations of its block, forward and backward, per module.

    mods: ignored, as in torch. depth: levels of modules in the table. display: print the table at the end of the block.
    custom_mapping: additional formulas by operator (see `register_flop_formula`); a formula with an attribute
    `_get_raw` takes tensors.
    """

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None) -> None:  # fmt: skip
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        custom = {k: _as_registered(f, getattr(f, "_get_raw", False)) for k, f in (custom_mapping or {}).items()}
        self.flop_registry: dict[Any, Formula] = {**flop_registry, **custom}
        self.mod_tracker = ModuleTracker()
        self.mode: _Counting | None = None

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counting(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self.mode is not None
        self.mode.__exit__(*exc)
        self.mode = None
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """The number of operations of the block so far."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Operations by module name ("Global" for all) and operator."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A text table: a line per module down to `depth` levels (by default the mode's), its operators below it, with shares."""
        depth = self.depth if depth is None else depth
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        rows: list[tuple[str, ...]] = []
        shown = sorted(m for m in self.flop_counts if m != "Global" and m.count(".") < depth)
        # "Global" is redundant if a single module does everything.
        if total and not any(sum(self.flop_counts[m].values()) >= total for m in shown):
            shown = ["Global", *shown]
        for module in shown:
            rows += self._rows(module, total)
        return _table(("Module", "FLOP", "% Total"), rows or [("Global", "0", "0%")])

    def _rows(self, module: str, total: int) -> Iterable[tuple[str, ...]]:
        counts = self.flop_counts[module]
        unit = _unit(total)
        yield module, _scaled(sum(counts.values()), unit), _share(sum(counts.values()), total)
        for op, n in counts.items():
            yield f"- {op}", _scaled(n, unit), _share(n, total)

    def count(self, op: Op, args: tuple[Any, ...], out: Any) -> None:
        """Record one call of an op of the table."""
        found = self._counted(op, args, out)
        if found is not None:
            key, flops = found
            for module in self.mod_tracker.parents:
                self.flop_counts[module][key] += flops

    def _counted(self, op: Op, args: tuple[Any, ...], out: Any) -> tuple[Any, int] | None:
        name = op.name
        if name == "linear":
            name, args = _of_linear(*args)
        elif name in _REPORTED_AS and op.rules.flops is not None:
            return _REPORTED_AS[name], shape_wrapper(op.rules.flops)(*args, out_val=out)
        elif name == "convolution" and self.mod_tracker.is_bw:
            return _ATEN.convolution_backward, self.flop_registry[_ATEN.convolution](*args, out_val=out)
        key = getattr(_ATEN, name, None)
        formula = self.flop_registry.get(key)
        return None if formula is None else (key, formula(*args, out_val=out))


class _Counting(TorchDispatchMode):
    def __init__(self, counter: FlopCounterMode) -> None:
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        out = func(*args, **(kwargs or {}))
        self.counter.count(func, args, out)
        return out


# ---- text ----

_UNITS: Final = ("", "K", "M", "B", "T")


def _unit(n: int) -> int:
    """Index of the largest unit in which `n` is at least 10."""
    return max(0, min((len(str(n)) - 2) // 3, len(_UNITS) - 1))


def _scaled(n: int, unit: int) -> str:
    return f"{n / 1000**unit:.3f}{_UNITS[unit]}"


def _share(n: int, total: int) -> str:
    return f"{n / total:.2%}" if total else "0%"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Columns under a rule; all but the first are right-aligned."""
    widths = [max(len(title) + 2, *map(len, cells)) for title, *cells in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = (cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(cells, widths, strict=True)))
        return "  ".join([first, *others]).rstrip()

    return "\n".join([line(head), line(["-" * w for w in widths]), *map(line, rows)])
