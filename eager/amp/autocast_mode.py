"""`autocast`: a block or decorated function in which ops run in the precision that the lists in `optable.autocast` give."""
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

# Device type -> its supported low precisions.
_SUPPORTED = {"cpu": (dtypes.bfloat16, dtypes.float16), "cuda": (dtypes.float16, dtypes.bfloat16)}


class _Thread(threading.local):
    """Per device the default precision of `autocast`; whether casts are cached; the manual count of open blocks."""

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
    """Whether `autocast` supports a device type."""
    return device(device_type).type in _SUPPORTED


def _precisions() -> tuple[tuple[str, dtype], ...]:
    state = thread_state.autocast()
    return () if state is None else state.precisions


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a device type in this thread. Raises: TypeError unless device_type is a str."""
    if not isinstance(device_type, str):
        raise TypeError(f"is_autocast_enabled(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    if device_type not in _SUPPORTED:
        device(device_type)  # raises RuntimeError for an unknown device
    return any(name == device_type for name, _ in _precisions())


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast on or off for a device type; with a single argument, for CUDA."""
    name, on = ("cuda", bool(device_type)) if enabled is None else (_check(device_type), bool(enabled))
    thread_state.switch_autocast(_number(name, _thread.dtypes[name] if on else None, _thread.keeps))


def get_autocast_dtype(device_type: str) -> dtype:
    """The low precision of a device type in this thread: of the open block, else of a new block."""
    name = _check(device_type)
    return next((lower for device_name, lower in _precisions() if device_name == name), _thread.dtypes[name])


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the low precision of a device type; takes effect at once if autocast is on."""
    name = _check(device_type)
    _thread.dtypes[name] = dtype
    if is_autocast_enabled(name):
        thread_state.switch_autocast(_number(name, dtype, _thread.keeps))


def _number(name: str, lower: dtype | None, keeps: bool) -> int:
    """The number of the autocast state in which device `name` has the precision `lower` (None: off)."""
    rest = [pair for pair in _precisions() if pair[0] != name]
    pairs = sorted([*rest, *([(name, lower)] if lower is not None else [])], key=lambda pair: pair[0], reverse=True)
    return thread_state.number_of(casting.State(tuple(pairs), keeps) if pairs else None)


def default_dtypes() -> tuple[dtype, dtype]:
    """The low precisions of this thread outside blocks: (CPU, CUDA)."""
    return _thread.dtypes["cpu"], _thread.dtypes["cuda"]


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> dtype:
    """The low precision of the CPU."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """The low precision of CUDA devices."""
    return get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the low precision of the CPU."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Set the low precision of CUDA devices."""
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are cached until the outermost block ends."""
    state = thread_state.autocast()
    return _thread.keeps if state is None else state.keeps


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switch the cache of casts on or off for blocks that this thread opens later."""
    _thread.keeps = bool(enabled)


def clear_autocast_cache() -> None:
    """Drop the cached casts."""
    casting.cache.casts.clear()


def autocast_increment_nesting() -> int:
    """Count the opening of a block. Returns: the number of open blocks."""
    _thread.nesting += 1
    return _thread.nesting


def autocast_decrement_nesting() -> int:
    """Count the end of a block. Returns: the number of open blocks."""
    _thread.nesting -= 1
    return _thread.nesting


def _settings(device_type: str, lower: dtype | None, enabled: bool, keeps: bool | None) -> tuple[str, dtype, bool, bool]:
    """(device type, low precision, whether autocast is on, whether casts are cached), from the arguments of `autocast`."""
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
    """Whether the device exists and supports the precision; warns if not."""
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
    """In this block (or decorated function) listed ops run in lower precision, or in float32 if they need its range.

    device_type: "cpu" or "cuda". dtype: bfloat16 or float16; by default `get_autocast_dtype(device_type)`. enabled:
    False turns autocast off within the block. cache_enabled: cache casts of weights until the outermost block ends.
    Raises: ValueError or RuntimeError for an unknown device type. If the device or the dtype is not
    available, it warns and has no effect.
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
    """`value` with its floating-point tensors on that device type (except float64) cast to `d`, inside containers too."""
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
    """Decorate `forward` of an `autograd.Function` that uses `custom_bwd`.

    With `cast_inputs`, an active autocast casts its inputs to that dtype and is off inside; otherwise it is unchanged.
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
    """Decorate `backward`, which then runs under the autocast state of `forward`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    name = _check(device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast(name, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
