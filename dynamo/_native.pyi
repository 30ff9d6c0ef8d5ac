"""The native half of capture: frame hook, compiled callables, guard programs, re-entry.

Conventions, the same everywhere:

* **Slots.** A call is seen as a flat sequence of *slots*: the function's arguments in the order
  of ``co_varnames`` (positional, keyword-only, then the ``*args`` tuple, then the ``**kwargs``
  dict; absent kinds have no slot). A *target* is called positionally with exactly those slots:
  the target of ``def f(a, *rest, k=1, **kw)`` is ``def compiled(a, k, rest, kw)``.
* **The function slot.** Guard programs of functions and frames see one more input slot after
  the arguments: the function object itself (its closure, defaults and globals are guarded
  through it). So for a function of n argument slots, ``GuardProgram(..., n_slots=n + 1)`` and
  temporaries are numbered from ``n + 1``. A `Dispatcher` called directly has no such slot.
* **Thread mode.** The frame hook looks at a frame only where its thread's mode is ``ON`` (capture
  and run) or ``RUN_ONLY`` (run what is compiled, never capture). Targets and miss callbacks run
  with the mode ``OFF``: what they call is not captured, unless they call it by
  `call_in_region`.
* All state changes are safe while a call is running (under the GIL).
"""

from collections.abc import Callable, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, TypeAlias, final

Target: TypeAlias = Callable[..., Any]
Instruction: TypeAlias = tuple[Any, ...]

@final
class NullType:
    """Type of `NULL`."""

NULL: Final[NullType]
"""The sentinel of an empty slot (an unbound local, NULL on the value stack)."""

OFF: Final = 0
ON: Final = 1
RUN_ONLY: Final = 2

STANCE_DEFAULT: Final = 0
STANCE_EAGER: Final = 1
STANCE_RUN_ONLY: Final = 2

ANY: Final[int]
"""In a tensor guard: any size, or any stride."""
AT_LEAST_2: Final[int]
"""In a tensor guard: any size of 2 or more (0 and 1 specialise)."""
META_ALL: Final[int]
"""Mask of a tensor guard that compares the whole meta word."""

# --- guards -----------------------------------------------------------------------------------

@final
class GuardProgram:
    """A flat program of fetches and checks over slots.

    ``GuardProgram(instructions, n_slots)``: slots ``0..n_slots-1`` are inputs, higher numbers
    are temporaries; each temporary is written once, before it is read. Every instruction is a
    tuple ``(op, *operands)`` and may carry one more element, its note (str or None), by which a report
    finds the guard. A Python exception raised inside a check (a
    property, an ``__eq__``) is a failed guard, unless it is not an `Exception`.

    .. Written by `python -m dynamo.guards.kind_files` from the table in dynamo/guards/kinds.py; do not edit.

    Fetches. ``src`` is a slot, ``dst`` a temporary::

        ("const", obj, dst)                   dst = obj (a strong reference)
        ("weak", ref, dst)                    ref(); fails once the referent is dead
        ("global", dict, key, dst)            dict[key]; fails if absent
        ("attr", src, name, dst)              getattr(src, name), all of Python's semantics
        ("generic_attr", src, name, dst)      object.__getattribute__(src, name), without __getattr__
        ("dict_attr", src, name, dst)         src.__dict__[name]; runs no other code
        ("type_attr", src, name, dst)         the entry along the MRO of the class src, not bound
        ("type_of", src, dst)                 type(src)
        ("dict_item", src, key, dst)          src[key] of a dict or a subclass, by dict's own lookup
        ("item", src, index, dst)             item of a list, tuple or deque; index >= 0
        ("cell", src, dst)                    contents of a cell; fails if empty
        ("closure", src, index, dst)          contents of a cell of the function src; fails if empty
        ("iterator_owner", src, dst)          the object that a built-in iterator iterates over
        ("made", src, fn, dst)                fn(src)

    Checks::

        ("held_type", obj, cls)               type(obj) is cls
        ("function_is", fn, field, value)     fn.field is value; field: __code__, __defaults__, __kwdefaults__
        ("type", src, cls)                    type(src) is cls
        ("is", src, obj)                      src is obj
        ("is_not", src, obj)                  src is not obj
        ("int_eq", src, value)                exactly int, equal; any size
        ("float_eq", src, value)              exactly float, the same bits (nan, -0.0)
        ("str_eq", src, value)                exactly str, equal
        ("const_eq", src, value)              the same exact type, and equal
        ("content_eq", src, value)            a str, int or float or an instance of a subclass, equal by the base's comparison
        ("len", src, n)                       stored length of a list, tuple, dict, set, str, deque or a subclass
        ("dict_keys", src, keys)              keys in order: identical, or the same exact type and equal
        ("set_elements", src, elements)       elements of a set in its order, as dict_keys compares keys
        ("no_attr", src, name)                getattr(src, name) raises AttributeError
        ("dict_absent", src, key)             a dict without the key
        ("cell_empty", src)                   an empty cell
        ("tensor", src, cls, meta, mask, sizes, strides)  type(src) is cls; (meta word & mask) == (meta & mask); sizes; strides
        ("int_range", src, low, high)         exactly int, low <= src <= high
        ("grad_mode", modes)                  modes of the thread: 1 gradients are recorded, 2 inference mode
        ("ambient", word)                     autocast state and default device of the thread
        ("call_eq", fn, value)                fn() has the exact type of value and is equal
        ("type_absent", src, name)            no class along the MRO of the class src has the name
        ("plain_new", src)                    the class src inherits object.__new__
        ("iterator_state", src, value)        position of a built-in iterator

    Relations between slots. They run after all other instructions, and cannot be part of a block::

        ("shape", (src, ...), (step, ...))    a relation of sizes, ints and floats in postfix: see below
        ("same", src_a, src_b)                src_a is src_b
        ("distinct", (src, ...))              pairwise not the same object
        ("alias", src_a, src_b)               two tensors share memory
        ("not_alias", (src, ...))             no two tensors share memory

    Blocks. Their instructions run only after an item has changed::

        ("watch", (item, ...), (instruction, ...))  the items are watched
        ("epoch", (item, ...), (instruction, ...))  the items and eager's global epoch are watched

    Steps of a shape check; k numbers the sources::

        "const", number                       push a number; a float is given by its bits
        "size", k, dim                        push a size of source k
        "stride", k, dim                      push a stride of source k
        "offset", k                           push the storage offset of source k
        "int", k                              push source k, an int
        "add" "mul" "floordiv" "mod" "min" "max"  combine two ints
        "float", k                            push source k, a float
        "to_float"                            convert an int
        "fadd" "fsub" "fmul" "fdiv"           combine two floats
        "fneg"                                negate a float
        "eq" "ne" "lt" "le"                   end: compare two ints
        "feq" "fne" "flt" "fle" "fnot_lt" "fnot_le"  end: compare two floats

    .. End of the list.

    Tensor guards: sizes is a tuple of int, ANY or AT_LEAST_2; strides is a tuple of int or ANY, or None for
    "contiguous under the actual sizes". len(sizes) is compared with the tensor's ndim.

    An item is a dict (any write to it is seen), a type (any change of a class attribute along
    its MRO) or another object (stands for the ``__dict__`` it has now: replacing that dict by
    assignment is seen only through the epoch, which Module.__setattr__ bumps). If no item has changed
    since the instructions last passed the block passes at once; otherwise the instructions run,
    and their success is remembered. ``epoch`` adds eager's global epoch to what is watched (the
    module-tree guard). The instructions must depend on nothing but the items (and the epoch):
    not on input slots that may hold different objects in another call. Temporaries written in
    a block are not visible outside it. Blocks do not nest.

    Raises: TypeError/ValueError for a malformed instruction, naming its index.
    """

    n_slots: int
    def __new__(cls, instructions: Sequence[Instruction], n_slots: int, /) -> GuardProgram: ...
    def __len__(self) -> int:
        """Number of flat instructions (those of blocks included, in place)."""
    def check(self, slots: Sequence[Any], /) -> bool:
        """Whether the guards hold for `slots` (len n_slots). Raises ValueError on another length."""
    def failed(self, slots: Sequence[Any], /) -> tuple[int, str | None] | None:
        """First failing instruction as (flat index, note), or None. Does not trust remembered blocks."""
    def describe(self) -> list[tuple[int, str, str | None]]:
        """(flat index, text, note) of each instruction; instructions of a block are indented."""
    def bench(self, slots: Sequence[Any], n: int, /) -> float:
        """Nanoseconds per check over n checks. Raises ValueError if the guards do not hold."""

@final
class Entry:
    """One compiled version: guards and the target they admit. Immutable but for `hits`."""

    program: GuardProgram | None
    """None: no guards, always admitted."""
    target: Target | None
    """None: run the original plainly (of a CompiledFunction or frame) or the fallback (Dispatcher)."""
    pass_function: bool
    hits: int
    def __new__(
        cls, program: GuardProgram | None, target: Target | None, /, *, pass_function: bool = False
    ) -> Entry:
        """With pass_function the target gets the function object as one more, last, argument."""

# --- callables --------------------------------------------------------------------------------

@final
class CompiledFunction:
    """The callable that `@compile` returns for a Python function.

    A call binds its arguments to slots (reading ``__defaults__`` and ``__kwdefaults__`` at each
    call), tries entries, the most recently hit first, and calls the target. With no match it calls
    ``miss(self, slots)``, which returns a target, an `Entry` (run, not added), or None: run the
    original, its callees captured in `region` if there is one. A binding error runs the
    original, so that Python's own TypeError is raised.

    Behaves as the function: descriptor, ``__wrapped__``, ``__name__``, ``__doc__``,
    ``__module__``, ``__qualname__``, ``__defaults__`` and other attributes, ``__dict__``, weakrefs.
    If the function's ``__code__`` is replaced, the entries are dropped.

    Raises: TypeError if fn is not a plain Python function, or miss not callable.
    """

    miss: Callable[[CompiledFunction, tuple[Any, ...]], Target | Entry | None]
    region: Region | None
    """Region of the frames met while the original runs plainly; None: the hook stays off."""
    hits: int
    misses: int
    __wrapped__: FunctionType
    def __new__(
        cls,
        fn: FunctionType,
        miss: Callable[[CompiledFunction, tuple[Any, ...]], Target | Entry | None],
        region: Region | None = None,
    ) -> CompiledFunction: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def bind(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The slots of a call (without the function slot). Raises TypeError if it does not bind."""
    def add_entry(
        self, program: GuardProgram | None, target: Target | None, /, *, pass_function: bool = False
    ) -> Entry:
        """Add an entry, in front. program.n_slots must be the argument slots + 1."""
    def entries(self) -> list[Entry]:
        """In the order they are tried."""
    def remove_entry(self, entry: Entry, /) -> bool:
        """Whether it was there."""
    def clear_entries(self) -> None: ...

@final
class Dispatcher:
    """The same machinery over flat slots: continuations of a graph break, and hooked frames.

    ``dispatcher(*slots)`` tries the entries and calls the target with the slots; with no match
    ``miss(self, slots)`` returns a target, an `Entry`, or None: call ``fallback(*slots)``.
    Raises: RuntimeError if there is no match, no target from miss and no fallback.
    """

    miss: Callable[[Dispatcher, tuple[Any, ...]], Target | Entry | None] | None
    fallback: Target | None
    key: Any
    """Whatever the owner keys it by, e.g. (code, offset); kept alive."""
    hits: int
    misses: int
    def __new__(
        cls,
        miss: Callable[[Dispatcher, tuple[Any, ...]], Target | Entry | None] | None,
        fallback: Target | None = None,
        key: Any = None,
    ) -> Dispatcher: ...
    def __call__(self, *slots: Any) -> Any: ...
    def add_entry(
        self, program: GuardProgram | None, target: Target | None, /, *, pass_function: bool = False
    ) -> Entry: ...
    def entries(self) -> list[Entry]: ...
    def remove_entry(self, entry: Entry, /) -> bool: ...
    def clear_entries(self) -> None: ...

def set_stance(stance: int, /) -> int:
    """Process-wide: STANCE_EAGER runs originals, STANCE_RUN_ONLY never calls miss. Returns the old one."""

def set_error_callback(callback: Callable[[BaseException], None] | None, /) -> None:
    """Set the function that is called with each exception that leaves a target, before the caller receives it.

    The callback may change the `__traceback__` of the exception. An exception of the callback is reported as unraisable.
    """

def set_adopt_callback(callback: Callable[[FrameType, tuple[Any, ...]], None] | None, /) -> None:
    """Set the function that is called with a frame of `resume` and its argument `shown`, before the frame runs.

    An exception of the callback is reported as unraisable.
    """

def set_disabled(disabled: bool, /) -> bool:
    """This thread: compiled functions run their originals and the hook does nothing. Returns the old value."""

def call_disabled(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """fn(*args, **kwargs) with this thread disabled, as under `disable`."""

# --- hook -------------------------------------------------------------------------------------

@final
class Region:
    """Frames met by the hook on behalf of one compiled function: their dispatchers, by code.

    ``miss(code, func, slots)`` is called for a fresh frame with no dispatcher, or with one whose
    entries do not match; slots are the argument slots (without the function). It runs with the
    hook off, untraced, the error state saved. It returns a target or `Entry` to run with the
    frame's arguments instead of the frame, or None: run the frame. Code is compared by identity.
    """

    miss: Callable[[CodeType, FunctionType, tuple[Any, ...]], Target | Entry | None] | None
    def __new__(
        cls, miss: Callable[[CodeType, FunctionType, tuple[Any, ...]], Target | Entry | None] | None = None
    ) -> Region: ...
    def __len__(self) -> int:
        """Number of codes with a dispatcher or a skip mark."""
    def dispatcher(self, code: CodeType, /) -> Dispatcher:
        """The dispatcher of the frames of `code`, made if absent. Its miss and fallback are not used
        for frames; its programs have n_slots = argument slots + 1."""
    def get(self, code: CodeType, /) -> Dispatcher | None: ...
    def skip(self, code: CodeType, /) -> None:
        """Frames of `code` run plainly in this region (their callees are still looked at)."""
    def skipped(self, code: CodeType, /) -> bool: ...
    def clear(self, code: CodeType | None = None, /) -> None:
        """Forget one code, or all."""

def set_miss_callback(
    callback: Callable[[CodeType, FunctionType, tuple[Any, ...]], Target | Entry | None] | None, /
) -> None:
    """Set the miss of the default region: the one of enter_region() without a region."""

def mark_skip(code: CodeType, /) -> None:
    """Frames of `code` run plainly in every region (their callees are still looked at)."""

def clear_code(code: CodeType, /) -> None:
    """Undo mark_skip, and forget the code in the default region."""

def is_skipped(code: CodeType, /) -> bool: ...
def hook_installed() -> bool:
    """Whether the interpreter's frame evaluation function is this module's hook."""

def active_regions() -> int:
    """Regions entered and not left, in all threads."""

def thread_mode() -> int:
    """OFF, ON or RUN_ONLY, of the calling thread."""

def enter_region(region: Region | None = None, mode: int = ON, /) -> tuple[int, Region | None]:
    """Install the hook if needed and set this thread's mode. Returns the token for leave_region."""

def leave_region(token: tuple[int, Region | None], /) -> None:
    """Restore what enter_region (same thread) replaced; the last one out uninstalls the hook."""

def call_in_region(region: Region | None, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """fn(*args, **kwargs) inside the region (None: the default one), mode ON. Used by generated code
    for the call at a graph break. fn's own frame is looked at too."""

def call_plain(region: Region | None, fn: FunctionType, /, *args: Any, **kwargs: Any) -> Any:
    """As call_in_region, but fn's own frame runs plainly: only its callees are looked at."""

def call_outside(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """fn(*args, **kwargs) with this thread's mode OFF."""

# --- tails ------------------------------------------------------------------------------------

@final
class Tail:
    """A continuation and its arguments. The caller of the function that returns the tail runs the continuation."""

def tail(target: Callable[..., Any], /, *args: Any) -> Tail:
    """A tail to return: the caller runs target(*args) when the returning frame is gone."""

def drive(tail: Any, /) -> Any:
    """Run target(*args), then every tail that it returns."""

# --- re-entry ---------------------------------------------------------------------------------

def resume(
    func: FunctionType,
    offset: int,
    locals: tuple[Any, ...] | list[Any],
    stack: tuple[Any, ...] | list[Any],
    exc: BaseException | list[BaseException] | None = None,
    handled: BaseException | NullType | list[BaseException | None] | None = ...,
    shown: tuple[Any, ...] | list[Any] = ...,
    /,
) -> Any:
    """Run func's own code from the instruction at byte `offset` in a fresh frame, to its end.

    Lists are emptied, so that the frame alone holds their items; exc and handled may come in a list of one item.
    shown: an argument of the callback of `set_adopt_callback`.
    locals: one value per co_nlocalsplus (`localsplus_names`): locals, cells, free variables; cell and
    free slots take cell objects; NULL is unbound. stack: the value stack from the bottom; NULL allowed.
    exc: raise this, as if the instruction at `offset` had raised it. handled: what sys.exc_info() shows
    meanwhile (None: nothing; NULL, the default: as it is now).
    The thread's mode applies to callees: wrap in call_in_region to have them looked at.
    Raises: ValueError if offset is not the start of an instruction, or lies between an
    instruction and its prefix (EXTENDED_ARG, KW_NAMES), or a tuple has the wrong length; TypeError
    if a free-variable slot is not a cell; NotImplementedError for generators and coroutines.
    """

def localsplus_names(code: CodeType, /) -> tuple[str, ...]:
    """Names of the slots that `resume` takes, in order."""

def localsplus_kinds(code: CodeType, /) -> bytes:
    """For each slot bits 0x20 local, 0x40 cell, 0x80 free (0x10: hidden local of an inlined comprehension)."""

def resume_points(code: CodeType, /) -> tuple[int, ...]:
    """The offsets that `resume` accepts, ascending."""

def snapshot(
    frame: FrameType, depth: int, /
) -> tuple[int, tuple[Any, ...], tuple[Any, ...], BaseException | None]:
    """(offset, locals, stack, handled) of a suspended frame, whose value stack holds `depth` items.

    For tests and for step breaks: frame is one whose tracing or monitoring callback is running.
    """

def iterator_owner(iterator: Any, /) -> Any:
    """The object that a built-in iterator iterates over: a list, a dict, an inner iterator, or the tuple of iterators of zip; or the
    dict of a view."""

def iterator_state(iterator: Any, /) -> Any:
    """A constant for the position of a built-in iterator; None at its end.

    Over a list or tuple: the index. Over a range or str: (object, index). Over a dict: the number of remaining items. enumerate:
    the next number. zip: whether it is strict. Raises: RuntimeError if the dict has changed size.
    """

def make_cell(value: Any = ..., /) -> Any:
    """A new cell; empty if value is absent or NULL."""
