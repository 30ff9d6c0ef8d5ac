"""`autocast`: a block, or a decorated function, in which ops choose their precision by `casting`'s lists."""
from __future__ import annotations

import collections.abc
import functools
import threading
import warnings
from typing import Any

from eager import cuda
from eager._tensor.tensor import Tensor
from eager.base import dtypes, thread_state
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.flags import check_flags as _check_flags
from eager.optable import autocast as casting

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# Device type -> the precisions that it can be lowered to.
_SUPPORTED = {"cpu": (dtypes.bfloat16, dtypes.float16), "cuda": (dtypes.float16, dtypes.bfloat16)}


class _Thread(threading.local):
    """Per device the precision that `autocast` without a dtype uses; whether its casts are kept; blocks counted by hand."""

    def __init__(self) -> None:
        self.dtypes = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
        self.keeps = True
        self.nesting = 0


_thread = _Thread()


def _check(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    name = device(device_type).type
    if name not in _SUPPORTED:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{name}'; allowed: {', '.join(_SUPPORTED)}")
    return name


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast(device_type)` exists."""
    return device(device_type).type in _SUPPORTED


def _precisions() -> tuple[tuple[str, dtype], ...]:
    state = thread_state.autocast()
    return () if state is None else state.precisions


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for that kind of device in this thread."""
    if not isinstance(device_type, str):
        raise TypeError(f"is_autocast_enabled(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    if device_type not in _SUPPORTED:
        device(device_type)  # RuntimeError for a word that names no device
    return any(name == device_type for name, _ in _precisions())


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast for a kind of device; with one argument, for CUDA."""
    name, on = ("cuda", bool(device_type)) if enabled is None else (_check(device_type), bool(enabled))
    thread_state.switch_autocast(_number(name, _thread.dtypes[name] if on else None, _thread.keeps))


def get_autocast_dtype(device_type: str) -> dtype:
    """The low precision of that kind of device in this thread: of the block that is open, or what a block would have."""
    name = _check(device_type)
    return next((lower for device_name, lower in _precisions() if device_name == name), _thread.dtypes[name])


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the low precision; it takes effect at once where autocast is on."""
    name = _check(device_type)
    _thread.dtypes[name] = dtype
    if is_autocast_enabled(name):
        thread_state.switch_autocast(_number(name, dtype, _thread.keeps))


def _number(name: str, lower: dtype | None, keeps: bool) -> int:
    """The number of the present state with a kind of device at `lower`, or off."""
    rest = [pair for pair in _precisions() if pair[0] != name]
    pairs = sorted([*rest, *([(name, lower)] if lower is not None else [])], key=lambda pair: pair[0], reverse=True)
    return thread_state.number_of(casting.State(tuple(pairs), keeps) if pairs else None)


def default_dtypes() -> tuple[dtype, dtype]:
    """The low precisions of this thread outside blocks: the CPU's and CUDA's."""
    return _thread.dtypes["cpu"], _thread.dtypes["cuda"]


def is_autocast_cpu_enabled() -> bool:
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> dtype:
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    return get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until the outermost block ends."""
    state = thread_state.autocast()
    return _thread.keeps if state is None else state.keeps


def set_autocast_cache_enabled(enabled: bool) -> None:
    _thread.keeps = bool(enabled)


def clear_autocast_cache() -> None:
    """Drop the kept casts."""
    casting.cache.casts.clear()


def autocast_increment_nesting() -> int:
    """Count a block that opens; returns how many are open."""
    _thread.nesting += 1
    return _thread.nesting


def autocast_decrement_nesting() -> int:
    """Count a block that ends; returns how many are open."""
    _thread.nesting -= 1
    return _thread.nesting


def _settings(device_type: str, lower: dtype | None, enabled: bool, keeps: bool | None) -> tuple[str, dtype, bool, bool]:
    """Device type, low precision, whether to do anything, whether to keep casts: from the arguments of `autocast`."""
    if lower is not None and not isinstance(lower, dtypes.dtype):
        raise ValueError(f"Expected `dtype` of type `torch.dtype`, got: `{type(lower)}`")
    _check_flags("set_autocast_enabled", enabled=enabled)
    if keeps is not None:
        _check_flags("set_autocast_cache_enabled", enabled=keeps)
    name = _check(device_type)
    fast = _thread.dtypes[name] if lower is None else lower
    possible = bool(enabled) and _is_possible(name, fast)
    return name, fast, possible, _thread.keeps if keeps is None else keeps


def _is_possible(name: str, fast: dtype) -> bool:
    """Whether there is such a device, and the precision on it; warned about if not."""
    if name == "cuda" and not cuda.is_available():
        warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling autocast.", stacklevel=4)
        return False
    if fast not in _SUPPORTED[name]:
        allowed = ", ".join(str(d) for d in _SUPPORTED[name])
        warnings.warn(f"In {name.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                      f"{name.upper()} Autocast only supports dtypes of {allowed} currently.", stacklevel=4)  # fmt: skip
        return False
    return True


class autocast:  # noqa: N801 - torch's name
    """In this block (or decorated function) ops on autocast's lists run in lower precision, or in float32 for safety.

    device_type: "cpu" or "cuda". dtype: bfloat16 or float16; by default what `get_autocast_dtype` says. enabled: False
    turns autocast off within the block. cache_enabled: keep casts of weights until the outermost block ends.
    Raises: ValueError or RuntimeError for a device type that it does not know. Where the device or the dtype is not
    available, it warns and does nothing.
    """

    def __init__(self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        self.device, self.fast_dtype, self._enabled, self._cache_enabled = _settings(device_type, dtype, enabled, cache_enabled)
        self._before: list[int] = []

    def __enter__(self) -> autocast:
        lower = self.fast_dtype if self._enabled else None
        self._before.append(thread_state.switch_autocast(_number(self.device, lower, self._cache_enabled)))
        return self

    def __exit__(self, *exc: object) -> None:
        thread_state.switch_autocast(self._before.pop())

    def __call__(self, fn: Any) -> Any:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        return wrapper


# ---- custom autograd functions ----


def _cast(value: Any, device_type: str, d: dtype) -> Any:
    """`value` with its floating-point tensors on that kind of device (float64 apart) in `d`, whatever they stand in."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype is not dtypes.float64
        return value.to(d) if fits else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, d): _cast(v, device_type, d) for k, v in value.items()}
    if isinstance(value, collections.abc.Iterable):
        made = (_cast(v, device_type, d) for v in value)
        return type(value)(made) if isinstance(value, (list, tuple)) else made
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorates `forward` of an `autograd.Function`: with `cast_inputs`, under autocast, its inputs come in that dtype and
    autocast is off inside; without, it runs under whatever is on. Goes with `custom_bwd`.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    name = _check(device_type)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(name)
        if cast_inputs is None:
            args[0]._fwd_used_autocast = is_autocast_enabled(name)
            return fwd(*args, **kwargs)
        on = is_autocast_enabled(name)
        args[0]._fwd_used_autocast = False
        if not on:
            return fwd(*args, **kwargs)
        with autocast(name, enabled=False):
            return fwd(*_cast(args, name, cast_inputs), **_cast(kwargs, name, cast_inputs))

    return decorated


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates `backward`, which then runs under the autocast that `forward` ran under."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    name = _check(device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast(name, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
