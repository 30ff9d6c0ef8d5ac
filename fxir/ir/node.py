"""One node of a graph: its name, its target, its arguments and its users.

Owns `Node`, its typed facts (`NodeInfo`), names of nodes, and the walks over nested arguments (`map_nodes`, `walk_nodes`). The
meaning of targets belongs to the interpreter and the backends.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.base.spec import fake
from fxir.base.origin import Origin
from fxir.ir.leaves import has_side_effect  # noqa: F401 - a name of torch.fx.node

if TYPE_CHECKING:
    from eager.base.spec import TensorSpec
    from fxir.symbols.shapes import ShapeEnv

T = TypeVar("T")

OP_KINDS: Final = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")

Spec: TypeAlias = "TensorSpec | tuple[Spec, ...] | None"
Argument: TypeAlias = Any  # Node | scalar | str | dtype | device | None | tuple/list/dict/slice of Argument
Target: TypeAlias = "Callable[..., Any] | str"


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """Facts about a node's value: the spec of its tensor(s) and the user's line that computes it.

    held: of a placeholder, that the compiled entry holds its tensor: most often a parameter or buffer of a module.
    """

    spec: Spec = None
    origin: Origin | None = None
    held: bool = False

    def with_(self, **changes: Any) -> NodeInfo:
        """A copy with some fields replaced."""
        return replace(self, **changes)


NO_INFO: Final = NodeInfo()


_ATOMS: Final = frozenset((int, bool, float, str, type(None), dtype, device))  # the most frequent classes of arguments without nodes


def map_nodes(arg: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Rebuild `arg` with every Node in it (in nested tuples, lists, dicts and slices) replaced by fn(node)."""
    cls = arg.__class__
    if cls is tuple or cls is list:  # every graph is rebuilt several times, and most arguments are short tuples
        items = [a if a.__class__ in _ATOMS else fn(a) if a.__class__ is Node else map_nodes(a, fn) for a in arg]
        return items if cls is list else tuple(items)
    return arg if cls in _ATOMS else map_instances(arg, Node, fn)


def map_instances(arg: Any, kind: type[T], fn: Callable[[T], Any]) -> Any:
    """`map_nodes` for other leaves: every instance of the class `kind` is replaced by fn(instance)."""
    if isinstance(arg, kind):
        return fn(arg)
    if isinstance(arg, tuple):
        items = [map_instances(a, kind, fn) for a in arg]
        return type(arg)(*items) if hasattr(arg, "_fields") else tuple(items)
    if isinstance(arg, list):
        return [map_instances(a, kind, fn) for a in arg]
    if isinstance(arg, dict):
        return {k: map_instances(v, kind, fn) for k, v in arg.items()}
    if isinstance(arg, slice):
        return slice(*(map_instances(a, kind, fn) for a in (arg.start, arg.stop, arg.step)))
    return arg


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Rebuild `a` with every value in its tuples, lists, dicts and slices replaced by fn(value)."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(value, fn) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def walk_nodes(arg: Argument) -> list[Node]:
    """The Nodes inside `arg`, in order, repeats included."""
    return walk_tree(arg, Node)


def walk_tree(tree: Any, kind: Any) -> list[Any]:
    """The instances of `kind` (a class, or a tuple of classes) in nested tuples, lists, dicts (their values) and slices, in order."""
    found: list[Any] = []
    if kind is Node:
        _collect_nodes(tree, found)
    else:
        _collect(tree, kind, found)
    return found


def _collect_nodes(tree: Argument, found: list[Node]) -> None:
    """`_collect` of nodes, which does not look into the most frequent arguments without nodes."""
    cls = tree.__class__
    if cls is tuple or cls is list:
        for a in tree:
            if a.__class__ is Node:
                found.append(a)
            elif a.__class__ not in _ATOMS:
                _collect_nodes(a, found)
    elif cls not in _ATOMS:
        _collect(tree, Node, found)


def _collect(tree: Any, kind: Any, found: list[Any]) -> None:
    if isinstance(tree, kind):
        found.append(tree)
    elif isinstance(tree, tuple | list):
        for a in tree:
            _collect(a, kind, found)
    elif isinstance(tree, dict):
        for a in tree.values():
            _collect(a, kind, found)
    elif isinstance(tree, slice):
        for a in (tree.start, tree.stop, tree.step):
            _collect(a, kind, found)


# -- names ---------------------------------------------------------------------------------------------------------
# Names that the printed source uses itself: Python's own names, and names that its header binds.
_RESERVED: Final = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "OPS", "eager"])
_NOT_IDENTIFIER: Final = re.compile(r"\W+", re.ASCII)
_TRAILING_NUMBER: Final = re.compile(r"_\d+$")


def name_hint(target: Any) -> str:
    """A name for a call of `target`: a str itself, else the callable's name; dots become underscores."""
    if isinstance(target, str):
        return target.replace(".", "_")
    names = (getattr(target, "name", None), getattr(target, "__name__", None), type(target).__name__)
    return next(name for name in names if isinstance(name, str)).replace(".", "_")


class NodeNames:
    """The names in use in one graph: valid Python identifiers, each of one node."""

    __slots__ = ("_counters", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counters: dict[str, int] = {}

    def take(self, hint: str) -> str:
        """Reserve a free name: `hint` as an identifier, with a number behind it if that name is taken."""
        base = _NOT_IDENTIFIER.sub("_", hint.strip("_") if hint.startswith("__") else hint).rstrip("_") or "value"
        if base[0].isdigit():
            base = f"_{base}"
        name = base
        if name in _RESERVED or name in self._used:
            stem = _TRAILING_NUMBER.sub("", base) or base
            count = self._counters.get(stem, 0)
            while True:
                count += 1
                name = f"{stem}_{count}"
                if name not in self._used:
                    break
            self._counters[stem] = count
        self._used.add(name)
        return name

    def release(self, name: str) -> None:
        """Make `name` free again."""
        self._used.discard(name)


# -- nodes ---------------------------------------------------------------------------------------------------------


class NodeOwner(Protocol):
    """The graph of a node, as far as nodes and code that holds a node need it. `fxir.ir.graph.Graph` implements it."""

    root: dict[str, Any]

    @property
    def shapes(self) -> ShapeEnv | None: ...
    def touch(self) -> None: ...
    def move_before(self, node: Node, anchor: Node) -> None: ...
    def erase_node(self, node: Node) -> None: ...
    def inserting_before(self, n: Node | None = None) -> AbstractContextManager[None]: ...
    def inserting_after(self, n: Node | None = None) -> AbstractContextManager[None]: ...
    def is_effectful(self, node: Node) -> bool: ...


class Node:
    """One step of a graph.

    op is one of
    - "placeholder": an input; target is its name, args may hold a default;
    - "get_attr": a value the graph carries; target is its key in `graph.root`;
    - "call_function": target(*args, **kwargs), target a callable (an Op in functional graphs);
    - "call_method": args[0].target(*args[1:], **kwargs), target a str;
    - "call_module": graph.root[target](*args, **kwargs);
    - "output": the graph returns args[0].

    `args` and `kwargs` are read-only: assign a new value to change them, which keeps `users` consistent. `type` is an
    annotation from the node's maker, or None; this project does not read it. `users` is an insertion-ordered dict of the nodes
    that read this node.
    """

    __slots__ = (  # "__dict__" for attributes that a user's rewriter sets on nodes
        "__dict__",
        "__weakref__",
        "_args",
        "_erased",
        "_inputs",
        "_kwargs",
        "_meta",
        "_next",
        "_prev",
        "graph",
        "info",
        "name",
        "op",
        "target",
        "type",
        "users",
    )

    def __init__(
        self,
        graph: NodeOwner,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        info: NodeInfo = NO_INFO,
    ) -> None:
        if op not in OP_KINDS:
            raise ValueError(f"Node {name}: op={op!r}; allowed: {', '.join(OP_KINDS)}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node {name}: call_function needs a callable target, got {target!r}")
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(f"Node {name}: {op} needs a str target, got {target!r}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type: Any = None
        self.users: dict[Node, None] = {}
        self.info = info
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._meta: dict[str, Any] | None = None
        self._read(args, kwargs)

    # -- arguments ---------------------------------------------------------------------------------------------
    def _set_args(self, value: tuple[Argument, ...]) -> None:
        self._set_arguments(value, self._kwargs)

    def _set_kwargs(self, value: dict[str, Argument]) -> None:
        self._set_arguments(self._args, value)

    if TYPE_CHECKING:
        _args: tuple[Argument, ...]
        _kwargs: dict[str, Argument]
        args: tuple[Argument, ...]
        kwargs: dict[str, Argument]

        @property
        def inputs(self) -> tuple[Node, ...]:
            """The nodes that this node reads, without repeats, in order of first appearance."""

        @property
        def spec(self) -> Spec:
            """Shorthand for `info.spec`."""
    else:  # every pass reads them at every node, so they run no Python code
        args = property(attrgetter("_args"), _set_args)
        kwargs = property(attrgetter("_kwargs"), _set_kwargs)
        inputs = property(attrgetter("_inputs"), doc="The nodes that this node reads, without repeats, in order of first appearance.")
        spec = property(attrgetter("info.spec"), doc="Shorthand for `info.spec`.")

    def _read(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        # map_nodes copies every container, so that a later change to the caller's list does not change the graph.
        found: list[Node] = []

        def keep(n: Node) -> Node:
            found.append(n)
            return n

        self._args = map_nodes(tuple(args), keep)
        self._kwargs = map_nodes(dict(kwargs), keep) if kwargs else {}
        self._inputs = tuple(dict.fromkeys(found))
        for new in self._inputs:
            new.users[self] = None

    def _set_arguments(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        for old in self._inputs:
            old.users.pop(self, None)
        self._read(args, kwargs)
        self.graph.touch()

    # -- rewriting ---------------------------------------------------------------------------------------------
    def replace_input(self, old: Node, new: Argument) -> None:
        """Read `new` wherever this node reads `old`."""

        def swap(n: Node) -> Argument:
            return new if n is old else n

        self._set_arguments(map_nodes(self._args, swap), map_nodes(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Argument,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
        except_: Node | None = None,
    ) -> list[Node]:
        """Make every user of this node (except `except_`) read `replace_with`; returns the changed users.

        delete_user_cb: decides for each user whether to change it. propagate_meta: copy this node's `meta` to `replace_with`, a
        node with empty `meta`. Raises: ValueError if its `meta` is not empty.
        """
        if propagate_meta:
            if not isinstance(replace_with, Node) or replace_with._meta:
                raise ValueError(f"Node.replace_all_uses_with: propagate_meta needs a node without meta, got {replace_with!r}")
            replace_with.meta = dict(self.meta)
        changed = [u for u in self.users if u is not except_ and u is not replace_with]
        if delete_user_cb is not None:
            changed = [u for u in changed if delete_user_cb(u)]
        for user in changed:
            user.replace_input(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """torch.fx's name of `replace_input`."""
        self.replace_input(old_input, new_input)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Set positional argument `idx`."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set keyword argument `key`."""
        self.kwargs = {**self._kwargs, key: arg}

    def prepend(self, x: Node) -> None:
        """Move `x` directly before this node."""
        self.graph.move_before(x, self)

    def append(self, x: Node) -> None:
        """Move `x` directly after this node."""
        if x is not self:
            self.graph.move_before(x, self._next)

    @property
    def all_input_nodes(self) -> list[Node]:
        """torch.fx's name of `inputs`, as a list."""
        return list(self._inputs)

    @property
    def meta(self) -> dict[str, Any]:
        """A dict for rewriters outside this project; this project's own passes use `info`.

        It starts with torch's entries: "example_value" and "val", fakes of the node's value, if its spec is known, and
        "stack_trace", the user's line.
        """
        if self._meta is None:
            self._meta = {}
            if self.info.spec is not None:
                self._meta["example_value"] = self._meta["val"] = _fakes(self.info.spec)
            if self.stack_trace is not None:
                self._meta["stack_trace"] = self.stack_trace
        return self._meta

    @meta.setter
    def meta(self, value: dict[str, Any]) -> None:
        self._meta = value

    @property
    def stack_trace(self) -> str | None:
        """The user's line in the form of a traceback, or None if it is not known."""
        origin = self.info.origin
        if origin is None:
            return None
        return f'  File "{origin.file}", line {origin.line}, in {origin.function}\n    {origin.source_line}\n'

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether dead code elimination keeps this node if it has no users. impure_random: random ops are impure."""
        kind = getattr(getattr(self.target, "kind", None), "name", None)
        return (impure_random and kind == "RANDOM") or self.graph.is_effectful(self)

    def format_node(self) -> str:
        """One line: `%name : [num_users=n] = op[target=...](args = ..., kwargs = ...)`, as torch.fx prints it."""
        if self.op == "placeholder":
            return f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]"
        if self.op == "output":
            return f"return {_percent(self._args[0])}"
        target = self.target if isinstance(self.target, str) else getattr(self.target, "__name__", str(self.target))
        call = f"(args = {_percent(self._args)}, kwargs = {_percent(self._kwargs)})"
        return f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target}]{call}"

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def __repr__(self) -> str:
        return self.name


map_arg = map_nodes  # torch.fx's name


def _fakes(spec: Any) -> Any:
    return tuple(map(_fakes, spec)) if isinstance(spec, tuple) else fake(spec) if spec is not None else None


def _percent(arg: Argument) -> str:
    """An argument in torch.fx's notation: nodes as %name."""
    if isinstance(arg, Node):
        return f"%{arg.name}"
    if isinstance(arg, tuple):
        return f"({', '.join(map(_percent, arg))}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, list):
        return f"[{', '.join(map(_percent, arg))}]"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_percent(v)}" for k, v in arg.items()) + "}"
    return str(arg)
