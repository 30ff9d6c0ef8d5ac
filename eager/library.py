"""`torch.library`: user-defined ops, which compiled graphs contain as single calls.

    @torch.library.custom_op("mylib::scale", mutates_args=())
    def scale(x: Tensor, by: float) -> Tensor: ...

    @scale.register_fake                    # the metadata of the result, for graphs
    def _(x, by): return torch.empty_like(x)

An op without a fake rule cannot be captured: it breaks the graph. An op that writes to its arguments is recorded as a
function of its results and the new values, plus in-place copies, so that graphs remain functional.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from eager import _native, compiler
from eager._ops import OpOverload, OpOverloadPacket, declare_overload
from eager._tensor.tensor import Tensor
from eager.autograd.function import Function
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec, fake, spec_of
from eager.dispatch import calls
from eager.optable.declaration import Rules
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "infer_schema", "opcheck",
           "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op",
           "wrap_triton"]  # fmt: skip

_TYPES: Final = {Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", dtype: "dtype", device: "device",
                 int | float | bool: "Scalar", int | float: "Scalar"}  # fmt: skip
_TORCH_TYPES: Final = {"SymInt": "int", "ScalarType": "dtype", "Device": "device", "Tensor": "Tensor", "Scalar": "Scalar"}
_LIST_PLURALS: Final = {"Tensor": "Tensor[]", "Tensor?": "Tensor?[]", "int": "int[]"}
_OF_TORCH: Final = frozenset({"aten", "prim", "prims", "profiler", "higher_order"})  # namespaces
_WAITING: dict[str, list[Callable[[CustomOpDef], object]]] = {}  # registrations for ops that are not declared yet


class CustomOpDef(Op):
    """A user-defined op. A call runs the implementation for the device of its tensors.

    Graphs contain `self`; if arguments are mutated, `self.functional`, whose first results are their new values.
    """

    is_custom = True

    def __init__(self, qualname: str, schema: str, mutates: tuple[str, ...] = ()) -> None:
        super().__init__(f"{_table_name(qualname)}{schema}", Kind.OPAQUE, Rules())
        self._qualname = qualname
        self._opoverload: OpOverload | None = None
        self.mutated = tuple(i for i, p in enumerate(self.schema.params) if p.name in mutates)
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.composite: Callable[..., Any] | None = None  # an implementation by other ops, from which its gradient follows
        self.recording: Callable[..., Any] | None = None  # called instead of the op if an input requires a gradient
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._function: type[Function] | None = None
        self.functional = _Functional(self) if self.mutated else self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    # -- registration ------------------------------------------------------------------------------------------
    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /) -> Any:
        """Use `fn` on these device types ("cpu", "cuda"; None: all). Without `fn`, a decorator."""
        if fn is None:
            return lambda f: self.register_kernel(device_types, f)
        for kind in (device_types,) if isinstance(device_types, str) else device_types or ("",):
            self.kernels[kind] = fn
        return fn

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """`fn` maps fake arguments to tensors with the metadata of the op's results; their values are ignored."""
        self.fake = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """Gradients: `setup_context(ctx, inputs, output)` runs after the call; `backward(ctx, *grads)` returns one per argument.

        Raises: RuntimeError for an op that mutates arguments.
        """
        if self.mutated:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {self._qualname} with schema "
                               f"{self.schema.text}. Please create a functional operator and register an autograd formula for "
                               "that.")  # fmt: skip
        self._backward, self._setup = backward, setup_context
        self._function = _recorder(self)

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Raises NotImplementedError."""
        raise NotImplementedError(f"{self._qualname}.register_vmap: batching rules of custom ops are not supported")

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Raises NotImplementedError."""
        raise NotImplementedError(f"{self._qualname}.register_torch_dispatch: __torch_dispatch__ is not supported")

    # -- running -----------------------------------------------------------------------------------------------
    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if self._opoverload is not None and (kwargs or len(args) < len(self.schema.params)):
            args, kwargs = self._opoverload._schema.bind(args, kwargs)
        full = self.schema.bind(args, kwargs)
        if self.composite is not None and not self.kernels:
            return self.composite(*full)
        if self.mutated:
            return self._mutate(full)
        if _native.grad_enabled() and self.wants_grad(full):
            return self._record(full) if self.recording is None else self.recording(*full)
        return calls.below(self, full)

    def _record(self, args: tuple[Any, ...]) -> Any:
        if any(isinstance(t, Tensor) and t.requires_grad for i in self._lists_at for t in args[i] or ()):
            raise NotImplementedError(f"{self._qualname}: gradients of tensors within lists are not supported")
        if self._function is not None:
            return self._function.apply(*args)

        def refuse(ctx: Any, *grads: Any) -> Any:
            raise RuntimeError(f"Trying to backward through {self._qualname} but no autograd formula was registered. "
                               "Please use register_autograd to add one.")  # fmt: skip

        self.register_autograd(refuse)
        return self._record(args)

    def _mutate(self, args: tuple[Any, ...]) -> Any:
        written = [args[i] for i in self.mutated if args[i] is not None]
        if any(t.requires_grad for t in written) and _native.grad_enabled():
            raise RuntimeError(f"{self._qualname}: an argument that requires grad is written to; a custom op that mutates has no gradient")
        if not calls.active_modes() and not any(t.is_fake for t in self.tensors(args)):
            result = self.run(args)
            for t in written:
                t._bump_version()
            return result
        results = calls.below(self.functional, args)
        results = results if isinstance(results, tuple | list) else (results,)
        for t, new in zip(written, results, strict=False):
            t.copy_(new)
        rest = tuple(results[len(written) :])
        return None if not rest else rest[0] if len(rest) == 1 else rest

    def run(self, args: tuple[Any, ...]) -> Any:
        """Call the implementation without recording. Raises: NotImplementedError if none exists for the device."""
        kind = next((t.device.type for t in self.tensors(args)), "cpu")
        kernel = self.kernels.get(kind) or self.kernels.get("")
        if kernel is None:
            raise NotImplementedError(f"{self._qualname}: no kernel for device {kind}; there are: {', '.join(self.kernels) or 'none'}")
        before = _native.set_grad_enabled(False)
        try:
            return compiler.call_outside(self._named, kernel, args)
        finally:
            _native.set_grad_enabled(before)

    def _named(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """`fn(*args)`, with keyword-only arguments passed by name."""
        params = self.schema.params
        given = [a for p, a in zip(params, args, strict=True) if not p.keyword_only]
        return fn(*given, **{p.name: a for p, a in zip(params, args, strict=True) if p.keyword_only})

    def fakes(self, args: tuple[Any, ...]) -> Any:
        """The results as fake tensors. Raises: NotImplementedError without a fake rule."""
        if self.fake is None and not self.schema.num_returns:
            return None
        if self.fake is None:
            raise NotImplementedError(f"There was no fake impl registered for {self._qualname}. Please use "
                                      "`torch.library.register_fake` to add a fake impl.")  # fmt: skip
        return self._named(self.fake, args)

    def execute(self, args: tuple[Any, ...]) -> Any:
        """Call the implementation, and check its results. Raises: RuntimeError if a result aliases an argument."""
        if any(t.is_fake for t in self.tensors(args)):
            with calls.modes_off():
                return self.fakes(args)
        result = self.run(args)
        inputs = {id(t) for t in self.tensors(args)}
        for t in result if isinstance(result, tuple | list) else (result,):
            if id(t) in inputs:
                raise RuntimeError(f"{self._qualname} (with implementation in {self._module()}): The output of this custom operator "
                                   "(1) must not also be an input to this custom operator and (2) may not alias any inputs to this "
                                   "custom operator or other returns. Please clone the offending output tensors.")  # fmt: skip
        return result

    def _module(self) -> str:
        return next((getattr(k, "__module__", "?") for k in self.kernels.values()), "?")

    def infer(self, *args: Any) -> Any:
        """The specs of the results. Raises: NotImplementedError without a fake rule."""
        with calls.modes_off():
            return _specs(self.fakes(_as_fakes(args)))


class _Functional(Op):
    """A mutating op as a function: returns the new values of the mutated arguments, then the op's results."""

    is_custom = True

    def __init__(self, op: CustomOpDef) -> None:
        name, rest = op.schema.text.split("(", 1)
        inside = rest.rpartition(") ->")[0]
        count = len(op.mutated) + max(op.schema.num_returns, 0)
        returns = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        super().__init__(f"{name}__functional({inside}) -> {returns}", Kind.OPAQUE, Rules(nondifferentiable=True))
        self.op = op

    def execute(self, args: tuple[Any, ...]) -> Any:
        if any(t.is_fake for t in self.tensors(args)):
            with calls.modes_off():
                return self._joined(args, self.op.fakes(args))
        copied = list(args)
        for i in self.op.mutated:
            copied[i] = None if copied[i] is None else copied[i].clone()
        return self._joined(tuple(copied), self.op.run(tuple(copied)))

    def _joined(self, args: tuple[Any, ...], result: Any) -> Any:
        results = () if result is None else tuple(result) if isinstance(result, tuple | list) else (result,)
        both = (*(args[i] for i in self.op.mutated if args[i] is not None), *results)
        return both[0] if len(both) == 1 else both

    def infer(self, *args: Any) -> Any:
        fakes = _as_fakes(args)
        with calls.modes_off():
            return _specs(self._joined(fakes, self.op.fakes(fakes)))


def _as_fakes(args: tuple[Any, ...]) -> tuple[Any, ...]:
    from_spec = fake

    def one(a: Any) -> Any:
        if isinstance(a, Tensor | TensorSpec):
            return from_spec(spec_of(a))
        return [one(v) for v in a] if isinstance(a, list) else a

    return tuple(map(one, args))


def _specs(result: Any) -> Any:
    if isinstance(result, tuple | list):
        return tuple(map(spec_of, result))
    return spec_of(result) if result is not None else ()


def _recorder(op: CustomOpDef) -> type[Function]:
    class Recorded(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            output = calls.below(op, args)
            if op._setup is not None:
                op._setup(ctx=ctx, inputs=args, output=output)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            assert op._backward is not None
            return op._backward(ctx, *grads)

    Recorded.__name__ = Recorded.__qualname__ = f"{op.schema.name}"
    return Recorded


# -- schemas -----------------------------------------------------------------------------------------------------
def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any = (), op_name: str | None = None) -> str:
    """The schema of a function from its annotations, such as "(Tensor x, float by) -> Tensor".

    mutates_args: names of the tensors that it writes to, or "unknown" for all of them. Raises: ValueError for a
    parameter without an annotation, or with an annotation that no schema type represents.
    """
    hints = typing.get_type_hints(prototype_function)
    params, star = [], False
    parameters = inspect.signature(prototype_function).parameters
    unknown = set() if isinstance(mutates_args, str) else set(mutates_args) - set(parameters)
    if unknown:
        raise ValueError(f"infer_schema(func): {unknown} in mutates_args were not found in the function's signature")
    for name, p in parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): {name} is variadic; a schema has a fixed number of parameters")
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation. Got func with signature "
                             f"{inspect.signature(prototype_function)})")  # fmt: skip
        if p.kind is p.KEYWORD_ONLY and not star:
            star = True
            params.append("*")
        text = _type_text(hints[name], name)
        if text.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args):
            text = text.replace("Tensor", f"Tensor(a{len(params)}!)", 1)
        params.append(f"{text} {name}" + ("" if p.default is p.empty else f"={_default_text(p.default)}"))
    returns = hints.get("return", None)
    return f"{op_name or ''}({', '.join(params)}) -> {_return_text(returns)}"


def _type_text(hint: Any, name: str) -> str:
    if hint in _TYPES:
        return _TYPES[hint]
    args = typing.get_args(hint)
    if type(None) in args:
        rest = [a for a in args if a is not type(None)]
        return _type_text(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)], name) + "?"  # noqa: UP007
    origin = typing.get_origin(hint)
    inner = _type_text(args[0], name) if origin in (list, Sequence, tuple) and args else ""
    if inner in ("Tensor", "Tensor?", "int", "float", "bool"):
        return inner + "[]"
    raise ValueError(f"infer_schema(func): Parameter {name} has unsupported type {hint}. The valid types are: Tensor, int, float, bool, "
                     "str, dtype, device, Sequence of Tensor, int, float or bool, and Optional of them.")  # fmt: skip


def _default_text(value: Any) -> str:
    return repr(str(value)) if isinstance(value, str | device) else str(value)


def _return_text(hint: Any) -> str:
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        return f"({', '.join(_type_text(a, 'return') for a in typing.get_args(hint))})"
    return _type_text(hint, "return")


def _parse(schema: str) -> tuple[str, tuple[str, ...]]:
    """(schema in this library's notation without the name, mutated parameters) of "(Tensor(a!) x, SymInt n) -> Tensor"."""
    inside, _, returns = schema.partition("(")[2].rpartition(") ->")
    mutated = tuple(re.findall(r"Tensor\(\w+!\)\??(?:\[\])?\s+(\w+)", inside))
    inside = re.sub(r"Tensor\(\w+!?\)", "Tensor", inside)
    inside = re.sub(r"\b(SymInt|ScalarType|Device)\b", lambda m: _TORCH_TYPES[m.group()], inside)
    inside = re.sub(r"\bint\[\d+\]", "int[]", inside)
    inside = re.sub(r"\b(?:float|bool|str)\[\]", "any", inside)
    returns = re.sub(r"Tensor\(\w+!?\)", "Tensor", returns.strip())
    returns = re.sub(r"(Tensor) \w+", r"\1", returns)
    if re.fullmatch(r"\(\s*Tensor\s*\)", returns):
        returns = "Tensor"
    if returns not in ("()", "Tensor", "Tensor[]") and not re.fullmatch(r"\(Tensor(, Tensor)*\)", returns):
        raise NotImplementedError(f"library: the schema returns {returns}; supported: Tensor, several Tensors, Tensor[] and ()")
    return f"({inside}) -> {returns}", mutated


# -- registration by name ----------------------------------------------------------------------------------------
def _add(qualname: str, schema: str, tags: Any = None) -> CustomOpDef:
    _check_name(qualname)
    text, mutated = _parse(schema)
    op = CustomOpDef(qualname, text if not text.endswith("-> ()") else text.removesuffix("()") + "Tensor", mutated)
    if text.endswith("-> ()"):
        op.schema = op.schema._replace(num_returns=0)
        if mutated:
            op.functional = _Functional(op)
    OPS[op.name] = op
    if isinstance(op.functional, _Functional):
        OPS[op.functional.name] = op.functional
    op._opoverload = declare_overload(*_parts(qualname), op, f"{qualname}{schema[schema.index('('):].strip()}", tags)
    for register in _WAITING.pop(qualname, ()):
        register(op)
    return op


def _when_declared(op: Any, register: Callable[[CustomOpDef], object]) -> None:
    """Call `register` now, or once the op is declared: fake rules may precede the library that declares the op."""
    name = op.removesuffix(".default") if isinstance(op, str) else ""
    if name.partition("::")[0] in _OF_TORCH:
        raise NotImplementedError(f"library: {name}: implementations of torch's own operators cannot be replaced; allowed: operators of "
                                  "other libraries, such as torch.library.custom_op makes")  # fmt: skip
    if "::" in name and _table_name(name) not in OPS:
        _check_name(name)
        _WAITING.setdefault(name, []).append(register)
    else:
        register(_find(op))


def _check_name(qualname: str) -> None:
    if not re.fullmatch(r"\w+::\w+(\.\w+)?", qualname):
        raise ValueError(f"Expected `name` to be of the form `namespace::name`, but got {qualname}")


def _parts(qualname: str) -> tuple[str, str, str]:
    """The (namespace, name, overload) of "namespace::name.overload"."""
    namespace, _, rest = qualname.partition("::")
    name, _, overload = rest.partition(".")
    return namespace, name, overload or "default"


def _table_name(qualname: str) -> str:
    """The name of the op in the op table."""
    namespace, name, overload = _parts(qualname)
    return f"{namespace}__{name}" if overload == "default" else f"{namespace}__{name}__{overload}"


def _find(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, OpOverloadPacket | OpOverload) and isinstance(op.op, CustomOpDef):
        return op.op
    if isinstance(op, str):
        found = OPS.get(_table_name(op))
        if isinstance(found, CustomOpDef):
            return found
        raise RuntimeError(f"operator {op} does not exist; define it with torch.library.define or custom_op")
    raise ValueError(f"library: got a {type(op).__name__}; allowed: a custom op or its name")


def custom_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
              device_types: str | Sequence[str] | None = None, schema: str | None = None, tags: Any = None) -> Any:  # fmt: skip
    """Make `fn` the op `name` ("namespace::name"). Without `fn`, a decorator.

    mutates_args: the parameters that it writes to. device_types: the devices on which `fn` is the implementation (None: all).
    schema: by default from the annotations of `fn`. Raises: ValueError for a malformed name or a missing annotation.
    """
    _check_name(name)
    if fn is None:
        return lambda f: custom_op(name, f, mutates_args=mutates_args, device_types=device_types, schema=schema, tags=tags)
    op = _add(name, schema or infer_schema(fn, mutates_args=mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)), tags)
    op.register_kernel(device_types, fn)
    op.__doc__ = fn.__doc__
    return op


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Declare the op `qualname`; `impl` adds implementations."""
    _add(qualname if lib is None or "::" in qualname else f"{lib.ns}::{qualname}", schema, tags)


def impl(qualname: Any, types: str | Sequence[str], func: Callable[..., Any] | None = None, *, lib: Library | None = None) -> Any:
    """Add an implementation for device types ("cpu", "cuda", "default"; or torch's dispatch keys).

    Without `func`, a decorator.
    """
    if func is None:
        return lambda f: impl(qualname, types, f, lib=lib) or f
    for key in (types,) if isinstance(types, str) else types:
        _when_declared(qualname, _registration(key, func))
    return None


def _registration(key: str, func: Callable[..., Any]) -> Callable[[CustomOpDef], object]:
    if key in ("Meta", "meta"):
        return lambda op: op.register_fake(func)
    if key in ("default", "CompositeExplicitAutograd"):
        return lambda op: op.register_kernel(None, func)
    if key.lower() in ("cpu", "cuda"):
        return lambda op: op.register_kernel(key.lower(), func)
    if key == "CompositeImplicitAutograd":
        return lambda op: setattr(op, "composite", func)
    if key in ("Autograd", "AutogradCPU", "AutogradCUDA"):
        return lambda op: setattr(op, "recording", func)
    raise NotImplementedError(f"library.impl: dispatch key {key!r}; supported: CPU, CUDA, Meta, CompositeExplicitAutograd, "
                              "CompositeImplicitAutograd, Autograd, AutogradCPU, AutogradCUDA")  # fmt: skip


def register_kernel(op: Any, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, *,
                    lib: Library | None = None) -> Any:  # fmt: skip
    """`CustomOpDef.register_kernel` by name."""
    return _find(op).register_kernel(device_types, func)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None, _stacklevel: int = 1,
                  allow_override: bool = False) -> Any:  # fmt: skip
    """`CustomOpDef.register_fake` by name, also for an op declared later. Without `func`, a decorator."""
    if func is None:
        return lambda f: register_fake(op, f)
    _when_declared(op, lambda found: found.register_fake(func))
    return func


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None,
                      lib: Library | None = None) -> None:  # fmt: skip
    """`CustomOpDef.register_autograd` by name."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Raises NotImplementedError."""
    return _find(op).register_vmap(func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Raises NotImplementedError."""
    return _find(op).register_torch_dispatch(torch_dispatch_class, func)


class Library:
    """Ops of one namespace: `Library("mylib", "DEF")`. kind: "DEF", "IMPL" or "FRAGMENT".

    Raises: ValueError for another kind.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported library kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare "name(arguments) -> returns". Returns: the name."""
        name = schema.partition("(")[0].strip()
        _add(f"{self.ns}::{name}", schema, tags)
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
             allow_override: bool = False) -> None:  # fmt: skip
        """Add an implementation of an op for a dispatch key."""
        name = op_name._qualname if isinstance(op_name, CustomOpDef) else op_name if "::" in op_name else f"{self.ns}::{op_name}"
        impl(name, dispatch_key or self.dispatch_key or "CompositeExplicitAutograd", fn)


def opcheck(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, test_utils: Any = None,
            raise_exception: bool = True, **tolerances: Any) -> dict[str, str]:  # fmt: skip
    """Compare the results of an op's fake rule and of the op for these arguments: shapes, dtypes, strides, devices.

    Returns: {"test_schema": "SUCCESS", "test_faketensor": ...}. Raises: the error of a failed check, if `raise_exception`.
    """
    found = _find(op)
    full = found.schema.bind(args, kwargs or {})
    results = {"test_schema": "SUCCESS", "test_faketensor": "SUCCESS"}
    try:
        real = _specs(found.functional.execute(full))
        expected = found.functional.infer(*full)
        if real != expected:
            raise RuntimeError(f"opcheck: {found._qualname} returns {real}, but its fake rule {expected}")
    except Exception as error:
        if raise_exception:
            raise
        results["test_faketensor"] = f"{type(error).__name__}: {error}"
    return results


def get_ctx() -> Any:
    """Raises NotImplementedError."""
    raise NotImplementedError("library.get_ctx: results whose size depends on data are not supported in custom ops")


def triton_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
              schema: str | None = None) -> Any:  # fmt: skip
    """Make `fn`, which calls Triton kernels through `wrap_triton`, the op `name`. Without `fn`, a decorator.

    As `custom_op`, with `fn` itself as fake rule: wrapped kernels do nothing for fake tensors. Compiled code calls it as a whole.
    """
    if fn is None:
        return lambda f: triton_op(name, f, mutates_args=mutates_args, schema=schema)
    op = custom_op(name, fn, mutates_args=mutates_args, schema=schema)
    op.register_fake(fn)
    return op


class wrap_triton:  # noqa: N801 - used like a function
    """A Triton kernel, called as `wrap_triton(kernel)[grid](...)`, that does nothing for fake tensors."""

    def __init__(self, triton_kernel: Any, /) -> None:
        self.kernel = triton_kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*args: Any, **kwargs: Any) -> Any:
            if any(isinstance(a, Tensor) and a.is_fake for a in (*args, *kwargs.values())):
                return None
            return self.kernel[grid](*args, **kwargs)

        return launch


def fallthrough_kernel() -> None:
    """Raises NotImplementedError."""
    raise NotImplementedError("library.fallthrough_kernel: there is no list of dispatch keys to fall through")
