"""The functions that a script of `fxir.region.repro` imports: its inputs, a run of its graph, and a comparison with eager."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import eager
from eager._tensor.tensor import Tensor
from eager.base import settings
from eager.base.pytree.tree import tree_leaves
from eager.nn import Module, Parameter

__all__ = ["AccuracyError", "Inputs", "Outcome", "check_same", "copied", "outcome", "run"]


class AccuracyError(Exception):
    """The values from compiled code differ from eager's."""


class Inputs:
    """The inputs of a script, appended to `args` in order. saved: the values, or None for random values."""

    def __init__(self, saved: Sequence[Any] | None = None) -> None:
        self.args: list[Any] = []
        self._saved = saved

    def storage(self, size_bytes: int, device: str = "cpu") -> Tensor:
        """Memory for tensors: inputs that are made from one storage share it."""
        return eager.empty(size_bytes, dtype=eager.uint8, device=device)

    def tensor(self, storage: Tensor, shape: Sequence[int], stride: Sequence[int], dtype: Any, *, offset: int = 0,
               requires_grad: bool = False, is_leaf: bool = True, is_parameter: bool = False) -> None:  # fmt: skip
        """The next input: a tensor in `storage`, with the saved values or random ones."""
        made = eager.empty(0, dtype=dtype, device=storage.device)
        made.set_(storage.untyped_storage(), offset, tuple(shape), tuple(stride))
        if self._saved is None:
            _randomise(storage, dtype)
        else:
            made.copy_(self._saved[len(self.args)])
        self.args.append(_with_history(made, requires_grad, is_leaf, is_parameter))

    def number(self, value: float) -> None:
        """The next input: an int or a float."""
        self.args.append(value)


def _randomise(storage: Tensor, dtype: Any) -> None:
    """Normal numbers; zeros and ones for ints and bools, which are often indices."""
    count = storage.numel() // dtype.itemsize
    whole = eager.empty(0, dtype=dtype, device=storage.device).set_(storage.untyped_storage(), 0, (count,), (1,))
    if dtype.is_floating_point or dtype.is_complex:
        whole.copy_(eager.randn(count))
    else:
        whole.copy_(eager.randint(0, 2, (count,)))


def _with_history(x: Tensor, requires_grad: bool, is_leaf: bool, is_parameter: bool) -> Tensor:
    if is_parameter:
        return Parameter(x, requires_grad=requires_grad)
    if not requires_grad:
        return x
    x.requires_grad_()
    return x if is_leaf else x.clone()


def copied(args: Sequence[Any]) -> list[Any]:
    """Inputs with the same values and strides in new memory, which they share in the same way as `args`."""
    storages: dict[int, Any] = {}
    made: dict[int, Any] = {}
    for x in args:
        if not isinstance(x, Tensor) or id(x) in made:
            continue
        owner = x.detach().untyped_storage()
        new = storages.setdefault(id(owner.root), None)
        if new is None:
            new = storages[id(owner.root)] = owner.clone()
        y = eager.empty(0, dtype=x.dtype, device=x.device).set_(new, x.storage_offset(), tuple(x.shape), x.stride())
        made[id(x)] = _with_history(y, x.requires_grad, x.is_leaf, isinstance(x, Parameter))
    return [made.get(id(x), x) for x in args]


class Outcome:
    """The effects of a run, by name: the leaves of its result, its arguments after the run, and their gradients."""

    def __init__(self, results: list[Any], inputs: list[Any], gradients: list[Any]) -> None:
        self.values = {f"output {i}": x for i, x in enumerate(results)}
        self.values |= {f"input {i} after the call": x for i, x in enumerate(inputs)}
        self.values |= {f"gradient of input {i}": x for i, x in enumerate(gradients)}


def outcome(fn: Callable[..., Any], args: Sequence[Any], *, forward_only: bool = False) -> Outcome:
    """Run `fn` on copies of the inputs, and its backward pass if it has one. The state of the random number generator is restored."""
    state = eager.get_rng_state()
    try:
        given = copied(args)
        tensors = [x for x in given if isinstance(x, Tensor)]
        for x in tensors:
            if x.requires_grad:
                x.retain_grad()
        results = tree_leaves(fn(*given))
        roots = [y for y in results if isinstance(y, Tensor) and y.requires_grad and y.grad_fn is not None]
        if roots and not forward_only and eager.is_grad_enabled():
            eager.autograd.backward(roots, [eager.ones_like(y) for y in roots])
        gradients = [x.grad for x in tensors if x.requires_grad]
        return Outcome([_plain(y) for y in results], [_plain(x) for x in tensors], gradients)
    finally:
        eager.set_rng_state(state)


def _plain(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


def check_same(found: Outcome, wanted: Outcome, tolerance: float, *, ignore_non_floats: bool = False) -> None:
    """Raises: AccuracyError, naming the value, if two runs differ by more than `tolerance`, relative and absolute."""
    for (name, x), y in zip(found.values.items(), wanted.values.values(), strict=True):
        if not isinstance(y, Tensor) or not isinstance(x, Tensor):
            if x is not y and (x is None or y is None or (x != y and x == x)):
                raise AccuracyError(f"Bad accuracy detected: {name} is {x}, eager gives {y}")
            continue
        if x.shape != y.shape or x.dtype != y.dtype:
            raise AccuracyError(f"Bad accuracy detected: {name} is {x.dtype} of {tuple(x.shape)}, "
                                f"eager gives {y.dtype} of {tuple(y.shape)}")  # fmt: skip
        if y.dtype.is_floating_point or y.dtype.is_complex:
            wide = eager.complex128 if y.dtype.is_complex else eager.float64
            if not eager.allclose(x.to(wide), y.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True):
                worst = (x.to(wide) - y.to(wide)).abs().max().item()
                raise AccuracyError(f"Bad accuracy detected: {name} differs from eager by up to {worst:.3g}; tolerance {tolerance:g}")
        elif not ignore_non_floats and not eager.equal(x, y):
            raise AccuracyError(f"Bad accuracy detected: {name} differs from eager")


def run(module: Module, load_args: Callable[[Inputs], None], *, backend: Any, values: Path, accuracy: bool = False,
        forward_only: bool = False, ignore_non_floats: bool = False, tolerance: float = 0.001, **compile_options: Any) -> None:  # fmt: skip
    """The command line of a script: run the module under the backend, forward and backward, and compare with eager on request.

    values: the file of saved inputs; random values if it does not exist. Raises: errors of the backend or of its code;
    AccuracyError.
    """
    parser = argparse.ArgumentParser(description="Run a captured graph under a backend.")
    parser.add_argument("--backend", default=backend, help="a name of torch._dynamo.list_backends() instead of the script's backend")
    parser.add_argument("--accuracy", action="store_true", default=accuracy, help="compare with eager code")
    parser.add_argument("--random", action="store_true", help="make random inputs instead of the saved ones")
    asked = parser.parse_args()
    if asked.backend is None:
        parser.error("the backend is a function that cannot be imported: set BACKEND in the script, or pass --backend")
    saved = None
    if values.exists() and not asked.random:
        saved = eager.load(values, weights_only=False)
    inputs = Inputs(saved)
    load_args(inputs)
    with settings.scope(debug_repro_after=""):
        compiled = eager.compile(module, backend=asked.backend, fullgraph=True, **compile_options)
        found = outcome(compiled, inputs.args, forward_only=forward_only)
        if asked.accuracy:
            check_same(found, outcome(module, inputs.args, forward_only=forward_only), tolerance, ignore_non_floats=ignore_non_floats)
    print("the graph runs without an error" + (f" and agrees with eager code within {tolerance:g}" if asked.accuracy else ""))
