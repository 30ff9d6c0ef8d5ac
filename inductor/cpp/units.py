"""The source units of a graph: printed kernels and their calls, each text once, the sizes of a call, the distribution over units.

A call of a kernel names the places of its buffers. It runs on one thread, or on several if its estimated time (`Cost`) is worth it.

Layers of a model that repeat share their kernels. Functions reach memory through an array of pointers that the caller fills, so
that two kernels that differ only in their buffers' places have the same text. Each kernel is in a separate namespace, so that
its text does not name it: its function is `run`, and the statement that calls it has the alias `kernel` for the namespace.

Sizes are values of a graph's symbols, and values that its plan and kernels compute from them, once per call.

A compiler run takes one core; its time is nearly proportional to the text. Functions of a single unit are `static`; functions
spread over several units are hidden symbols of the shared object, declared in every unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, NamedTuple

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.artifact.format import PRELUDE_END, ArtifactPlan, SourceUnit
from inductor.cpp.values import index_source, size_source
from inductor.ir.sizes import Size, is_symbolic, nominal, plain

RUN: Final = "run"  # the function of a kernel, in the kernel's namespace
CALLED: Final = "kernel"  # the namespace of a kernel, in the statement that calls it
SIZES_IN: Final = "FJ_SIZES_IN"  # placeholder for a given `bufs`: the places are known only when all buffers are
SIZES: Final = "FJ_SIZES"  # the values of the graph's symbols, then of other expressions; defined in the scope of `bufs`
_TITLES: Final = 4  # most results of one function that its comment names
LEAST_CHARS: Final = 48 << 10  # about 0.6 s of compiler: less does not pay for another run, which reads the prelude again
MOST_CHARS: Final = 512 << 10  # about 6 s: far below the time limit of a compiler run
FLOP_NS: Final = 0.01  # nanoseconds of a multiplication or addition in the core of a product, on one thread


class Code(NamedTuple):
    """Definitions of functions.

    heads: declarations of the functions that other texts call; `text` writes FJ_LOCAL before each definition of one.
    operations: the operations of the prelude, `fj_<name>`, that the functions call. outside: declarations at file scope that the
    functions need; a unit has each once, before all functions. vector_bits: of the units that may hold them, see `SourceUnit`.
    """

    text: str
    heads: tuple[str, ...] = ()
    operations: frozenset[str] = frozenset()
    outside: tuple[str, ...] = ()
    vector_bits: int = 0

    def inside(self, namespace: str) -> Code:
        """The definitions in a namespace."""
        heads = tuple(f"namespace {namespace} {{ {head} }}" for head in self.heads)
        return self._replace(text=f"namespace {namespace} {{\n{self.text}}}\n", heads=heads)


def joined(codes: Iterable[Code]) -> Code:
    """All definitions, in order."""
    codes = tuple(codes)
    operations = frozenset[str]().union(*(c.operations for c in codes))
    outside = dict.fromkeys(d for c in codes for d in c.outside)
    return Code("".join(c.text for c in codes), tuple(h for c in codes for h in c.heads), operations, tuple(outside))


class Functions:
    """Definitions in the order in which they were first added, each in a namespace. Equal texts are defined once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}
        self._codes: dict[str, Code] = {}
        self._titles: dict[str, list[str]] = {}

    def add(self, prefix: str, code: Code, title: str) -> str:
        """The namespace in which `code` is defined. title: the results that it computes for this caller, for a comment."""
        name = self._names.get((code.text, code.vector_bits))
        if name is None:
            name = self._names[code.text, code.vector_bits] = f"{prefix}{len(self._names)}"
            self._codes[name] = code.inside(name)
        self._titles.setdefault(name, []).append(comment(title))
        return name

    @property
    def codes(self) -> Sequence[Code]:
        """Each definition after a comment that names its callers' results."""
        return [c._replace(text=f"/* {_callers(self._titles[name])} */\n{c.text}") for name, c in self._codes.items()]


def _callers(titles: Sequence[str]) -> str:
    more = len(titles) - _TITLES
    return "\n   ".join([*titles[:_TITLES], *([f"and {more} more, named where they are called"] if more > 0 else [])])


def comment(text: str) -> str:
    """`text` in a form that is valid inside a C comment."""
    return text.replace("*/", "* /")


def arguments(pointers: Sequence[str]) -> str:
    """The statement that makes `args`: first `bufs` itself, then the pointers."""
    return f"char* args[] = {{{', '.join(['(char*)bufs', *pointers])}}};"


def declared(sizes: Iterable[E.IntLike], of: str = SIZES) -> list[str]:
    """Declarations of the graph's symbols in `sizes`, `n<k>` for the symbol number k. They read `SIZES`, which needs `bufs`."""
    numbers = {int(s.name[1:]) for n in sizes if isinstance(n, E.Expr) for s in n.symbols}
    return [f"const i64 n{k} = {of}[{k}];" for k in sorted(numbers)]


# -- kernels and their calls -----------------------------------------------------------------------------------------


class Place(NamedTuple):
    """The place of a buffer: entry of `bufs` and bytes from there; `dtype` of its elements. number: of a symbolic offset in the
    graph's sizes.
    """

    entry: int
    offset_bytes: Size
    dtype: dtype
    number: int = -1

    @property
    def offset(self) -> str:
        """The offset as C++ source."""
        return str(self.offset_bytes) if self.number < 0 else f"{SIZES}[{self.number}]"

    @property
    def source(self) -> str:
        """The pointer as C++ source."""
        return f"bufs[{self.entry}]" + (f" + {self.offset}" if self.offset_bytes != 0 else "")


class Kernel(NamedTuple):
    """A printed kernel.

    call: the statements that run it, which name its namespace `units.CALLED`. pointers: the contents of `args` after `bufs` there.
    title: the calls that it computes, by number of the node. cost_ns: its estimated time on one thread; symbolic_ps: the part
    of it that depends on symbols, in which case cost_ns is 0.
    """

    code: Code
    call: str
    pointers: tuple[str, ...]
    title: str
    cost_ns: float
    symbolic_ps: Size = 0

    def run(self, namespace: str) -> str:
        """The C++ block that calls the kernel. It reads `bufs` and `rt` of the scope around it.

        namespace: where `code` is defined; "" if the kernel has no code.
        """
        alias = f"namespace {CALLED} = {namespace}; " if namespace else ""
        return f"{{ {alias}{arguments(self.pointers)} {self.call} }}"


class Cost(NamedTuple):
    """Estimated nanoseconds of one iteration of the outer loop: a sum of ns * size."""

    terms: tuple[tuple[float, Size], ...]

    @property
    def ns(self) -> float:
        return sum([ns * (n if type(n) is int else nominal(n)) for ns, n in self.terms])

    def is_fixed(self) -> bool:
        return not is_symbolic(*(n for _, n in self.terms))

    def source(self) -> str:
        """As a C++ double."""
        fixed = sum(ns * n for ns, n in self.terms if isinstance(n, int))
        return " + ".join([f"{fixed!r}", *(f"{ns!r} * {size_source(n)}" for ns, n in self.terms if not isinstance(n, int))])

    def picoseconds(self, count: Size) -> Size:
        return plain(count * plain(E.total(E.mul(math.ceil(ns * 1000), n) for ns, n in self.terms)))

    def of(self, count: Size) -> tuple[float, Size]:
        """(nanoseconds, picoseconds) of `count` iterations: nanoseconds if all sizes are fixed, else picoseconds."""
        if isinstance(count, int) and self.is_fixed():
            return self.ns * count, 0
        return 0.0, self.picoseconds(count)


def launch(function: str, context: str, count: Size, each: Cost, parallel_ns: int) -> str:
    """The statement that runs function(context, begin, end) over 0..count, on several threads if one needs `parallel_ns`."""
    if not isinstance(count, int) or not each.is_fixed():
        return (f"{{ const i64 count = {size_source(count)}; const f64 each = {each.source()};\n"
                f"    if (count * each < {parallel_ns}.0) {function}({context}, 0, count);\n"
                f"    else rt->parallel_for(rt, {function}, {context}, count, 1 + (i64)({parallel_ns}.0 / (2 * each))); }}")  # fmt: skip
    cost = each.ns * count
    if count <= 1 or cost < parallel_ns:
        return f"{function}({context}, 0, {count});"
    grain = max(1, math.ceil(count * parallel_ns / (2 * cost)))
    return f"rt->parallel_for(rt, {function}, {context}, {count}, {grain});"


# -- sizes ---------------------------------------------------------------------------------------------------------


class Sizes:
    """Numbers of expressions, the symbols first."""

    def __init__(self, symbols: Sequence[E.Sym]) -> None:
        self._first = len(symbols)
        self._numbers: dict[E.Expr, int] = {s: i for i, s in enumerate(symbols)}

    def number(self, e: E.Expr) -> int:
        """The index of its value in the sizes of a call."""
        return self._numbers.setdefault(e, len(self._numbers))

    def derived(self, plan: ArtifactPlan) -> tuple[E.Expr, ...]:
        """All expressions beyond the symbols: the numbered expressions, and the expressions in `plan`."""
        for e in _expressions(plan):
            self.number(e)
        return tuple(self._numbers)[self._first :]

    def function(self, derived: Sequence[E.Expr]) -> str:
        """`fj_sizes`, which computes the derived sizes from the symbols."""
        values = [index_source(e, {}) for e in derived]
        lines = declared(derived, "sizes")
        lines += [f"sizes[{self._first + i}] = {value};" for i, value in enumerate(values)]
        body = "".join(f"  {line}\n" for line in lines)
        return f'extern "C" __attribute__((visibility("default"))) void fj_sizes(i64* sizes) {{\n{body}}}\n'


def _expressions(x: Any) -> Iterator[E.Expr]:
    if isinstance(x, E.Expr):
        yield x
    elif isinstance(x, tuple):
        for item in x:
            yield from _expressions(item)
    elif is_dataclass(x):
        for f in fields(x):
            yield from _expressions(getattr(x, f.name))


# -- distribution --------------------------------------------------------------------------------------------------


def spread(
    head: str, codes: Sequence[Code], calls: str, workers: int, after: Callable[[frozenset[str]], str] = lambda operations: ""
) -> list[SourceUnit]:
    """The units of a graph for `workers` simultaneous compiler runs.

    head: the start of every unit, which defines FJ_LOCAL as `static`. calls: the entry points, which call the functions.
    after: returns the text that a unit needs after its own text, by the operations that it calls. Functions that prefer another width of
    vectors are in a separate unit.
    """
    widths = sorted({0, *(c.vector_bits for c in codes)})
    chars = sum(len(c.text) for c in codes)
    count = max(1, min(max(workers, -(-chars // MOST_CHARS)), chars // LEAST_CHARS))
    if count * len(widths) == 1:
        return [SourceUnit("graph", head + PRELUDE_END + _text([*codes, Code(calls)], after))]
    head += "#undef FJ_LOCAL\n#define FJ_LOCAL\n" + "".join(f"{h}\n" for h in joined(codes).heads) + PRELUDE_END
    parts = _parts([c for c in codes if c.vector_bits == 0], count, len(calls) // 4)  # plain calls: quick to compile
    parts[-1].append(Code(calls))
    units = [*((0, part) for part in parts if part), *((bits, [c for c in codes if c.vector_bits == bits]) for bits in widths[1:])]
    return [SourceUnit(f"graph{k}", head + _text(part, after), vector_bits=bits) for k, (bits, part) in enumerate(units)]


def _parts(codes: Sequence[Code], count: int, last_chars: int) -> list[list[Code]]:
    """The definitions in `count` parts of about the same length. last_chars: that the last part has already."""
    parts: list[list[Code]] = [[] for _ in range(count)]
    sizes = [*[0] * (count - 1), last_chars]
    for c in codes:
        k = sizes.index(min(sizes))
        parts[k].append(c)
        sizes[k] += len(c.text)
    return parts


def _text(codes: Sequence[Code], after: Callable[[frozenset[str]], str]) -> str:
    """Definitions, between the declarations that they need and the text that follows them."""
    all_of_them = joined(codes)
    return "\n".join([*all_of_them.outside, *(c.text for c in codes)]) + after(all_of_them.operations)
