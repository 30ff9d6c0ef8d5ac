"""Example inputs: fake tensors in the place of real ones, with every property that a compilation may depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base.spec import TensorSpec, fake, spec_of
from eager.tape.node import attach


def fakes_like(tensors: Sequence[Any], specs: Sequence[TensorSpec | None] | None = None) -> list[Any]:
    """One fake per tensor: same metadata, leaf status and class (Parameter or tensor); fakes share storage as the tensors do.

    One object given twice gives one fake. A caller that reuses code compiled for the fakes must guard these properties.
    specs: symbolic shapes and strides instead of the tensors' own. A value that is not a tensor (an int argument) is returned
    unchanged.
    Raises: NotImplementedError if two inputs share memory as different dtypes.
    """
    stated = {id(t): s for t, s in zip(tensors, specs or [None] * len(tensors), strict=True)}
    counts: dict[int, set[int]] = {}
    made: dict[int, Any] = {id(t): t for t in tensors if not isinstance(t, Tensor)}
    for t in tensors:
        if id(t) in made:
            continue
        counts.setdefault(id(t.untyped_storage().root), set()).add(id(t))
    storages: dict[int, Tensor] = {}
    for t in tensors:
        if id(t) not in made:
            alone = len(counts[id(t.untyped_storage().root)]) == 1 and t.storage_offset() == 0
            spec = stated[id(t)] or spec_of(t)
            made[id(t)] = _like(t, spec, fake(spec) if alone else _over_shared(t, spec, storages))
    return [made[id(t)] for t in tensors]


def _over_shared(t: Tensor, stated: TensorSpec, storages: dict[int, Tensor]) -> Tensor:
    root = t.untyped_storage().root
    flat = storages.get(id(root))
    if flat is None:
        spec = TensorSpec.contiguous((max(root.nbytes() // t.dtype.itemsize, 1),), t.dtype, t.device)
        flat = storages[id(root)] = fake(spec)
    if flat.dtype is not t.dtype:
        raise NotImplementedError("fakes_like: two inputs share memory as different dtypes; clone() one of them")
    view: Tensor = _native.alias(flat, stated.shape, stated.strides, t.storage_offset())
    return view


def _like(t: Tensor, spec: TensorSpec, stand_in: Tensor) -> Tensor:
    if t._is_param:
        stand_in._is_param = True
    if not t._requires_grad:
        return stand_in
    if t.is_leaf:
        stand_in._requires_grad = True
    else:
        attach([stand_in], [fake(spec, True)], lambda grads: grads, "History")
    return stand_in
