"""The switches of `compile(options=...)`: torch's names of settings, for one compilation.

Owns the set of accepted options. Names and types are those in `inductor.config`; a setting that applies to the whole process
raises if one compilation requests another value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from eager.base import settings
from eager.utils._config_module import Config, Only, Setting, Values
from fxir.base.options import CompileOptions
from inductor import config as _config

# The settings that a compilation can override, beside the switches of CUDA kernels (see `launches_early` and `tries_descriptors`).
# `packing`: keep weights packed between calls. `channels_last` and `fold_batch_norm`: the graph passes of these names.
# `autotune_budget_s`: seconds that a graph may spend on measuring variants.
_AUTOTUNE: Final = ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise")
_EARLY_LAUNCH: Final = "triton.enable_pdl"
_DESCRIPTORS: Final = "triton.enable_persistent_tma_matmul"
PASSES: Final = ("fold_batch_norm", "channels_last")  # in the order in which they run
_OWN: Final[dict[str, Any]] = {"packing": True, **dict.fromkeys(PASSES, True), "autotune_budget_s": 30}
config: Final = cast(Config, _config)

_MODES: Final[dict[str, dict[str, Any]]] = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The options that a mode sets, under torch's names; without `mode`, the options of every mode.

    Raises: RuntimeError for an unknown mode.
    """
    if mode is None:
        return {name: dict(options) for name, options in _MODES.items()}
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    return dict(_MODES[mode])


def list_options() -> list[str]:
    """Every name that `options` may contain."""
    return sorted({*config.names(), *_OWN})


def _name(given: str) -> str:
    return given.replace("-", "_")


def is_autotuned(options: Mapping[str, Any]) -> bool:
    """Whether the options enable autotuning."""
    return _is_on(options, *_AUTOTUNE)


def launches_early(options: Mapping[str, Any]) -> bool:
    """Whether kernels on CUDA are launched before the kernels in front of them end (programmatic dependent launch)."""
    return _is_on(options, _EARLY_LAUNCH)


def tries_descriptors(options: Mapping[str, Any]) -> bool:
    """Whether products on CUDA are also measured with operands that the device copies by descriptors of matrices."""
    return _is_on(options, _DESCRIPTORS)


def _is_on(options: Mapping[str, Any], *names: str) -> bool:
    return any(value for given, value in options.items() if _name(given) in names)


def budget_s(options: CompileOptions) -> float:
    """Seconds that one graph may spend on measuring variants."""
    given = options.options.get("autotune_budget_s")
    return float(given if isinstance(given, int) else settings.current().cpu.autotune_budget_s)


def check_options(options: Mapping[str, Any]) -> None:
    """Raises: RuntimeError for an unknown name or a value of another type; NotImplementedError for a value that has no effect here."""
    for given, value in options.items():
        name = _name(given)
        if name not in config.names() and name not in _OWN:
            raise RuntimeError(f"Unexpected optimization option {given}, known options are {list_options()}")
        present = _OWN[name] if name in _OWN else config.read(name)
        accepted = Values(present, (type(present),)) if name in _OWN else config.entry(name).values()
        try:
            accepted.check(given, value)
        except (TypeError, ValueError) as error:
            raise RuntimeError(f"Unexpected type of attr {given}, got {type(value).__name__} should be "
                               f"{type(present).__name__}: {error}") from None  # fmt: skip
        if name in _OWN or name in (*_AUTOTUNE, _EARLY_LAUNCH, _DESCRIPTORS):
            continue
        entry = config.entry(name)
        if isinstance(entry, Setting) and value != present:
            raise NotImplementedError(f"compile: options={{{given!r}: {value!r}}}: this is a setting of the process; "
                                      f"set torch._inductor.config.{name}")  # fmt: skip
        if isinstance(entry, Only):
            entry.check(f"options[{given!r}]", value)
