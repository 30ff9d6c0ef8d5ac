"""Public callables with keyword parameters that no call of the plan calls, and the reasons by pattern of name."""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import eager
from tests.keywords.compare import plan

_MODULES: Final = (
    "amp autograd autograd.functional distributions fft func linalg nn nn.functional nn.init nn.utils nn.utils.parametrizations "
    "nn.utils.parametrize nn.utils.prune nn.utils.rnn optim optim.lr_scheduler optim.swa_utils profiler random signal.windows sparse "
    "special testing utils.checkpoint utils.data"
).split()
_SHORT: Final = {"nn": "nn", "nn.functional": "F", "optim": "optim", "optim.lr_scheduler": "optim.lr_scheduler", "distributions": "D"}
# Patterns of names, and the reason why the plan has no call of them.
UNCALLED: Final[tuple[tuple[str, str], ...]] = (
    (r"T\.\w+(Storage|Tensor)|T\.(Storage|Tensor|device|dtype)", "the classes of storages, tensors, devices and dtypes"),
    (r"T\.(Event|Stream)|nn\.DataParallel|Tensor\.(cuda|pin_memory)", "needs a GPU"),
    (r"T\.(DispatchKey|Tag)", "an enumeration"),
    (r"T\.cond", "its one keyword holds the tensors of both branches; the tests of control flow pass them"),
    (r"T\.compile", "test_options_of_compile_refuse_wrong_values tries its options"),
    (r"T\.(set_\w+|use_deterministic_algorithms)|T\.utils\.checkpoint\.set_device_states", "changes a state of the process"),
    (r"T\.(GradScaler|Future|vmap)|T\.autograd\.functional\.(grad|jacfwd|jacrev)|Tensor\.backward|T\.sparse\.to_sparse",
     "another name for a callable that is called"),
    (r"T\.(no_grad|enable_grad)|T\.amp\.custom_(bwd|fwd)|T\.optim\.swa_utils\.get_ema_multi_avg_fn",
     "its parameter is the function that it decorates or serves"),
    (r"(T|Tensor)\.slice_inverse|T\.from_dlpack|Tensor\.(hash_tensor|orgqr|ormqr)",
     "a method whose function is called, or an operand that torch makes itself"),
    (r"D\.(Distribution|ExponentialFamily|Transform|GeneralizedPareto|LKJCholesky)|nn\.(RNNCellBase|NonDynamicallyQuantizableLinear)",
     "a base class, or a class with the same keywords as its sibling classes"),
    (r"(optim\.lr_scheduler|T\.optim\.swa_utils)\.LRScheduler|T\.utils\.data\.Sampler", "a base class"),
    (r"nn\.Uninitialized(Buffer|Parameter)|T\.nn\.utils\.rnn\.PackedSequence|T\.sparse\.SparseTensor|T\.func\.Wrapped",
     "made by layers and functions, not by programs"),
    (r"T\.autograd\.(GradientEdge|InplaceFunction|Variable|set_detect_anomaly)", "set by hand in programs of autograd's own tests"),
    (r"T\.func\.functionalize", "not implemented, and says so"),
    (r"T\.func\.debug_unwrap|T\.nn\.utils\.parametrize\.transfer_parametrizations_and_params", "moves what other calls made"),
    (r"T\.profiler\.\w+", "records and writes; tests.utils and tests.eager try its options"),
    (r"T\.utils\.checkpoint\.\w+", "serves a policy of checkpoint, which is called"),
    (r"T\.\S+\.(state_for|torch_device|ModuleDict|ModuleList|Parameter)", "a name that the module imports for internal use"),
)  # fmt: skip


def uncalled(called: set[str]) -> Iterator[str]:
    """The public callables with keyword parameters that `called` lacks."""
    yield from _missing("T", eager, called)
    for path in _MODULES:
        yield from _missing(_SHORT.get(path, f"T.{path}"), _module(path), called)
    yield from _missing("Tensor", eager.Tensor, called)


def reason(name: str) -> str | None:
    """The reason why the plan has no call of a callable, or None."""
    return next((why for pattern, why in UNCALLED if re.fullmatch(pattern, name)), None)


def _module(path: str) -> ModuleType:
    found: Any = eager
    for part in path.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _missing(prefix: str, owner: Any, called: set[str]) -> Iterator[str]:
    for attribute in sorted(set(dir(owner))):
        value = None if attribute.startswith("_") else getattr(owner, attribute, None)  # which loads a lazy name
        if callable(value) and f"{prefix}.{attribute}" not in called and _is_own(prefix, attribute, value) and _has_keywords(value):
            yield f"{prefix}.{attribute}"


def _is_own(prefix: str, attribute: str, value: Any) -> bool:
    """Whether the name is part of the module's API. Public modules also import names of eager and of Python."""
    if prefix in ("T", "Tensor"):
        return True
    return str(getattr(value, "__module__", "")).startswith("eager") and not hasattr(eager, attribute)


def _has_keywords(value: Any) -> bool:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.KEYWORD_ONLY or (p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty) for p in parameters)


if __name__ == "__main__":  # in a separate process, in which no test has loaded further names
    print("\n".join(uncalled({call.name for call, _ in plan()})))
