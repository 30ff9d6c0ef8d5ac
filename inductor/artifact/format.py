"""A compiled graph as data: the interface between the compiler and the runtime.

Owns the frozen dataclasses below, their JSON form, and the native ABI. The compiler (`inductor.driver.compile`) produces an
`ArtifactPlan` and `SourceUnit`s; the runtime (`inductor.runtime`) loads the plan and the `.so` without importing the compiler.
This module does not depend on loop IR, scheduling, g++ or the disk cache.

Buffers. Every memory area of a graph is one entry of a flat table, `char** bufs`, in this fixed order:

    [ inputs... | new outputs... | constants... | packed... | arena | sizes ]

* inputs: data pointers of the input tensors (storage offset already added), described by `plan.inputs`.
* new outputs: new memory from the caching allocator, `plan.allocations[i].nbytes` bytes, 64-byte aligned.
* constants: tensors lifted into the graph, bound by name when the artifact is loaded.
* packed: `plan.packs`, weights in a kernel's own layout and other values of weights. The runtime fills them in order before the
  first step, and again only after a tensor behind them has changed.
* arena: one block of `plan.arena_bytes` for every intermediate; offsets into it are constants of the code. The next call may
  reuse it after this call has returned; nothing in it outlives a call.
* sizes: only in plans with symbols. An array of int64, made for each call: the values of `plan.symbols`, which the
  runtime reads from the inputs, then the values of `plan.derived`, which `extern "C" void fj_sizes(int64_t *sizes)` of the
  library computes from them before anything else runs.

A plan with symbols serves every value of them within their bounds. A field of type `Size` is an int or an expression over the
symbols; each such expression is one of `plan.symbols` or of `plan.derived`.

Steps run in order. A `NativeSegment` is `extern "C" void symbol(char** bufs, const Runtime* rt)`; an `ExternCall` runs an op of
the eager table from Python on views of the buffers. Most graphs are exactly one native segment.

The native ABI (`RUNTIME_ABI`, the text below) is included verbatim by the generated code's prelude and by the prebuilt runtime;
its version is part of every cache key.
"""

from __future__ import annotations

import json
from dataclasses import field, fields, is_dataclass
from typing import Any, TypeAlias

from eager.base.records import dataclass
from fxir.expr import nodes as E
from fxir.expr.nodes import Expr, Sym

Size: TypeAlias = int | Expr

# The last line of the prelude in a generated unit; logs show the text after it.
PRELUDE_END = "/* ---- end of the prelude ---- */\n"

ABI_VERSION = 4

RUNTIME_ABI = r"""
#define FJ_LOCAL static /* functions that other functions of the graph call; not static where they lie in several units */
typedef struct Runtime Runtime;
/* One matrix product c = alpha * op(a) @ op(b) + beta * c, row-major like cblas. op transposes where trans_* is 1.
   dtype: 0 float32, 1 float64. lda/ldb/ldc are row pitches in elements; batch products step by stride_* elements. */
typedef struct {
  int dtype, trans_a, trans_b;
  long batch, m, n, k;
  long lda, ldb, ldc;
  long stride_a, stride_b, stride_c;
  double alpha, beta;
  const void *a, *b;
  void *c;
} GemmCall;
/* Runs [begin, end) of a loop. Calls of one loop are disjoint, cover 0..n, and may run on several threads. */
typedef void (*LoopFn)(void *ctx, long begin, long end);
struct Runtime {
  int version;     /* == ABI_VERSION */
  int threads;     /* how many threads parallel_for can use, >= 1 */
  /* Calls fn over 0..n, in blocks of at least `grain` iterations; returns when all are done. Runs serially when
     n <= grain, inside another parallel loop, and while another Python thread's loop has the workers. */
  void (*parallel_for)(const Runtime *rt, LoopFn fn, void *ctx, long n, long grain);
  /* Runs one (batched) product on up to `threads` threads; 1 inside a parallel_for body. */
  void (*gemm)(const Runtime *rt, const GemmCall *call, int threads);
  /* 64-byte aligned memory of the calling thread, kept between calls; `slot` 0 or 1 are two separate areas.
     Its contents are lost at the thread's next call with the same slot. NULL: out of memory. */
  void *(*scratch)(const Runtime *rt, int slot, long nbytes);
  /* Records, on the calling thread of a segment, that `value` fails plan.checks[check]. The segment continues, memory-safe;
     after it returns, the call raises. */
  void (*fail)(const Runtime *rt, int check, long value);
};
"""


@dataclass(frozen=True, slots=True)
class Spec:
    """Layout of a tensor: sizes, element strides, dtype name ("float32") and device ("cpu", "cuda:0")."""

    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    dtype: str
    device: str = "cpu"

    def fixed(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(shape, strides) of a layout without symbols. Raises: TypeError for a layout with symbols."""
        shape = tuple(n for n in self.shape if not isinstance(n, Expr))
        strides = tuple(n for n in self.strides if not isinstance(n, Expr))
        if (len(shape), len(strides)) != (len(self.shape), len(self.strides)):
            raise TypeError(f"{self} has symbolic sizes; allowed: a layout without symbols")
        return shape, strides


@dataclass(frozen=True, slots=True)
class IntInput:
    """An input that is a Python int: one of the plan's symbols."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """The place of a symbol's value in a call: a size, stride (of dim `dim`) or the storage offset of input `input`, or that
    input itself. kind: "size", "stride", "offset" or "int".
    """

    symbol: Sym
    kind: str
    input: int
    dim: int = 0


@dataclass(frozen=True, slots=True)
class Allocation:
    """New memory for one graph output buffer. Several outputs may be views of it."""

    nbytes: Size
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Constant:
    """A tensor bound when the artifact is loaded: `name` in the GraphModule's root."""

    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class BufferView:
    """A strided view of buffer `buffer` (index into `bufs`) starting `offset_bytes` in."""

    buffer: int
    offset_bytes: Size
    spec: Spec


@dataclass(frozen=True, slots=True)
class NewOutput:
    """A tensor over a new allocation: `allocation`, at `offset` elements."""

    allocation: int
    spec: Spec
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class InputAlias:
    """The tensor object passed as input `index`."""

    index: int


@dataclass(frozen=True, slots=True)
class ConstantAlias:
    """The tensor object bound as constant `index`."""

    index: int


@dataclass(frozen=True, slots=True)
class ViewOf:
    """A view sharing storage with input `index` (`of="input"`), constant `index`, or output `index` of this
    graph (`of="output"`); `offset` is in elements from that tensor's first element."""

    of: str
    index: int
    spec: Spec
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class Literal:
    """An output that is not a tensor: None, a number, a bool or a string."""

    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class IntOutput:
    """An int that depends on the symbols."""

    value: Expr


Output = NewOutput | InputAlias | ConstantAlias | ViewOf | Literal | IntOutput


@dataclass(frozen=True, slots=True)
class NativeSegment:
    """`extern "C" void symbol(char** bufs, const Runtime* rt)` in the graph's shared object.

    cost_ns: a rough estimate of its time on one thread. From it the runtime decides whether to release the interpreter lock,
    and whether the workers of the thread pool should stay awake for it.
    """

    symbol: str
    cost_ns: Size = 0


@dataclass(frozen=True, slots=True)
class ExternCall:
    """Runs `eager.optable.table.OPS[op]` on `args` and stores its result(s) in `outputs`.

    args: the op's full positional arguments; a tensor is a `BufferView`, nested tuples are kept; the others are None, bool,
    Size, float, complex, str, `DtypeArg` or `DeviceArg`.
    outputs: one view per result, None for a result without readers. If a view has the strides that the op's kernel produces,
    the kernel writes directly into it, otherwise its result is copied.
    node: the number of the call's node in the graph (see `inductor.base.user_lines`); -1 if it has no node.
    """

    op: str
    args: tuple[Any, ...]
    outputs: tuple[BufferView | None, ...]
    node: int = -1


# The number of the checks among the buffers of a launch: two int64 for each check, which only kernels of a device have as memory.
CHECKS_BUFFER = -2


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """Runs kernel `kernel` of `plan.kernels` in `grid` programs on the current stream of the plan's device.

    buffers: (index in `bufs`, offset in bytes) for each pointer of the kernel. sizes: the int64 arguments after the pointers.
    """

    kernel: int
    buffers: tuple[tuple[int, Size], ...]
    sizes: tuple[Size, ...]
    grid: Size


@dataclass(frozen=True, slots=True)
class BufferCopy:
    """Copies bytes on the plan's device. target, source: (index in `bufs`, offset in bytes)."""

    target: tuple[int, Size]
    source: tuple[int, Size]
    nbytes: Size


@dataclass(frozen=True, slots=True)
class MatrixOperand:
    """A batch of matrices. place: (index in `bufs`, offset in bytes) of the first element.

    pitch: elements from a row to the next; from a column to the next if `is_transposed`. step: elements from a matrix to the next.
    alignment: bytes that divide the address of the first element.
    """

    place: tuple[int, Size]
    is_transposed: bool
    pitch: int
    step: int
    alignment: int


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """Computes result[i] = a[i] @ b[i] + bias by cuBLASLt, for each i of the batch, on the current stream of the plan's device.

    dtype: the name of a's and b's dtype. stored: of the result's and the bias's. is_tf32: whether operands of float32 may lose mantissa
    bits. sizes: batch, rows, columns and depth. bias: a row that every row gets, or None. algorithm: the library's record of 64 bytes,
    in hex. workspace: (index in `bufs`, offset in bytes) of `workspace_bytes`.
    """

    dtype: str
    stored: str
    is_tf32: bool
    sizes: tuple[int, int, int, int]
    a: MatrixOperand
    b: MatrixOperand
    result: MatrixOperand
    bias: MatrixOperand | None
    algorithm: str
    workspace: tuple[int, Size]
    workspace_bytes: int


# Bytes of the slot of one input in an upload: the largest element, and the alignment that kernels rely on.
UPLOAD_SLOT = 16


@dataclass(frozen=True, slots=True)
class Upload:
    """Copies 0-d inputs on the host to the plan's device, before all launches and in every call, replayed or not.

    target: (index in `bufs`, offset in bytes) of slots of `UPLOAD_SLOT` bytes, one for each input. inputs: their numbers.
    """

    target: tuple[int, Size]
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """A kernel of a device: `nbytes` of machine code from byte `start` of the graph's library.

    threads: of one program. shared_bytes: memory that they share. dtypes: names of the dtypes that the pointers point to. source:
    Triton's source, in plans for an emulated device, which have no machine code. waits: whether it is launched before the kernel in
    front of it ends, for which its code waits.
    """

    name: str
    start: int
    nbytes: int
    threads: int
    shared_bytes: int
    dtypes: tuple[str, ...]
    source: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Pack:
    """Values that depend on weights alone, such as a weight in a kernel's layout: `extern "C" void symbol(char** bufs, const
    Runtime* rt)` computes them into their own entry of `bufs`.

    sources: the buffers of the inputs and constants that they depend on. It may read these, and earlier packs that have no other
    sources. nbytes: of its entry.
    """

    symbol: str
    sources: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on data that native code tests: if it fails, the call raises builtin exception `error` with `text`, in which
    {} is the offending value and {size} is `size`.
    """

    error: str
    text: str
    size: Size = 0


@dataclass(frozen=True, slots=True)
class DtypeArg:
    """An `eager.dtype` argument of an extern call, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class DeviceArg:
    """An `eager.device` argument of an extern call, by its text."""

    text: str


Step = NativeSegment | ExternCall | KernelLaunch | MatrixProduct | BufferCopy | Upload


@dataclass(frozen=True, slots=True)
class SourceUnit:
    """One C++ translation unit of the graph's shared object, or the source of a device kernel.

    suffix: of its file, which names the language. reusable: other graphs contain exactly this text (the GEMM cores), so its object
    file is kept and compiled once per machine; its name and symbols depend only on the text. vector_bits: preferred SIMD width, 0
    for the machine's widest.
    """

    name: str
    text: str
    reusable: bool = False
    vector_bits: int = 0
    suffix: str = ".cpp"


@dataclass(frozen=True, slots=True)
class ArtifactPlan:
    """Everything needed to run a compiled graph besides its shared object.

    inputs: layouts the code was compiled for; the caller has checked them (guards).
    outputs: how each output of the graph is made, in graph order.
    written_inputs: inputs whose memory the graph writes (their version counters must be incremented).
    checks: the checks that `rt->fail` reports, by number. symbols, derived: see "sizes" above. device: where it runs, "cpu" or
    "cuda:0"; the inputs of a plan for CUDA are on its device, or 0-d on the CPU, and its library is the machine code of `kernels`, one
    after the other.
    """

    inputs: tuple[Spec | IntInput, ...]
    outputs: tuple[Output, ...]
    allocations: tuple[Allocation, ...] = ()
    constants: tuple[Constant, ...] = ()
    packs: tuple[Pack, ...] = ()
    arena_bytes: Size = 0
    steps: tuple[Step, ...] = ()
    written_inputs: tuple[int, ...] = ()
    device: str = "cpu"
    checks: tuple[Check, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    derived: tuple[Expr, ...] = ()
    kernels: tuple[DeviceKernel, ...] = ()
    abi: int = field(default=ABI_VERSION)

    def input_buffer(self, i: int) -> int:
        """Index in `bufs` of input i."""
        return i

    def output_buffer(self, i: int) -> int:
        """Index in `bufs` of allocation i."""
        return len(self.inputs) + i

    def constant_buffer(self, i: int) -> int:
        """Index in `bufs` of constant i."""
        return len(self.inputs) + len(self.allocations) + i

    def packed_buffer(self, i: int) -> int:
        """Index in `bufs` of the packed form that packs[i] makes."""
        return self.constant_buffer(len(self.constants)) + i

    @property
    def arena_buffer(self) -> int:
        """Index in `bufs` of the arena."""
        return self.packed_buffer(len(self.packs))

    @property
    def sizes_buffer(self) -> int:
        """Index in `bufs` of the sizes, in a plan with symbols."""
        return self.arena_buffer + 1

    @property
    def sizes(self) -> tuple[Expr, ...]:
        """The expressions whose values are the sizes of a call, in order."""
        return (*(s.symbol for s in self.symbols), *self.derived)

    def to_json(self) -> str:
        """One line of JSON that `from_json` reads back to an equal plan (floats exact, inf and nan kept)."""
        return json.dumps(_encode(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> ArtifactPlan:
        """Read the text that `to_json` wrote. Raises: ValueError for another text, or another ABI version."""
        plan = _decode(json.loads(text))
        if not isinstance(plan, ArtifactPlan):
            raise ValueError(f"ArtifactPlan.from_json: the text holds a {type(plan).__name__}, not a plan; "
                             "delete the cache entry and compile again")
        if plan.abi != ABI_VERSION:
            raise ValueError(f"ArtifactPlan.from_json: ABI {plan.abi}, this build has {ABI_VERSION}; compile again")
        return plan


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compiler's result for the runtime: `inductor.driver.compile.compile_graph(graph, kind, request)` returns it.

    notes: decisions (fusions refused, kernels chosen), one a line, for `explain` and the logs.
    """

    plan: ArtifactPlan
    units: tuple[SourceUnit, ...]
    notes: tuple[str, ...] = ()


_CLASSES: dict[str, type] = {
    c.__name__: c
    for c in (Spec, IntInput, Symbol, Allocation, Constant, BufferView, NewOutput, InputAlias, ConstantAlias, ViewOf, Literal,
              IntOutput, NativeSegment, ExternCall, KernelLaunch, MatrixOperand, MatrixProduct, BufferCopy, Upload,
              DeviceKernel, Pack, Check, DtypeArg, DeviceArg, SourceUnit, ArtifactPlan)
}
_EXPRESSIONS: dict[str, type[Expr]] = {
    c.__name__: c for c in (E.Int, E.Sym, E.Mul, E.FloorDiv, E.Mod, E.Min, E.Max, E.Add)
}


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return [_encode(v) for v in value]
    if isinstance(value, complex):
        return {"": "complex", "re": value.real, "im": value.imag}
    name = type(value).__name__
    if isinstance(value, Expr):
        # An expression is in normal form, so `intern` with its fields restores it.
        return {"": name, "expr": [_encode(field) for field in value.__reduce__()[1][1]]}
    if _CLASSES.get(name) is not type(value) or not is_dataclass(value):
        raise TypeError(f"ArtifactPlan.to_json: cannot store a {name} ({value!r}); allowed: numbers, strings, None, "
                        "tuples and the classes of inductor.artifact.format")
    return {"": name, **{f.name: _encode(getattr(value, f.name)) for f in fields(value)}}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(v) for v in value)
    if not isinstance(value, dict):
        return value
    name = value.get("")
    if name == "complex":
        return complex(value["re"], value["im"])
    if name in _EXPRESSIONS:
        try:
            return E.intern(_EXPRESSIONS[name], tuple(_decode(v) for v in value["expr"]))
        except (AttributeError, TypeError) as error:
            raise ValueError(f"ArtifactPlan.from_json: {value!r} is not an expression ({error})") from None
    cls = _CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"ArtifactPlan.from_json: unknown record {name!r}; delete the cache entry and compile again")
    return cls(**{k: _decode(v) for k, v in value.items() if k})
