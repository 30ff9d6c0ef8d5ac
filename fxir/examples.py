"""Example inputs: fakes that stand for real tensors, with everything a compilation may depend on."""

from __future__ import annotations

from collections.abc import Sequence

from eager import _native
from eager.autograd.node import attach
from eager.fake import fake, fake_like
from eager.spec import TensorSpec, spec_of
from eager.tensor import Tensor


def fakes_like(tensors: Sequence[Tensor]) -> list[Tensor]:
    """One fake per tensor: same metadata, leaf or not, Parameter or not; sharing storage as the tensors do.

    One object given twice is one fake. Whoever reuses what is compiled for them must guard these facts.
    """
    counts: dict[int, set[int]] = {}
    for t in tensors:
        counts.setdefault(id(t.untyped_storage().root), set()).add(id(t))
    storages: dict[int, Tensor] = {}
    made: dict[int, Tensor] = {}
    for t in tensors:
        if id(t) not in made:
            alone = len(counts[id(t.untyped_storage().root)]) == 1 and t.storage_offset() == 0
            made[id(t)] = _like(t, fake_like(t, False) if alone else _over_shared(t, storages))
    return [made[id(t)] for t in tensors]


def _over_shared(t: Tensor, storages: dict[int, Tensor]) -> Tensor:
    root = t.untyped_storage().root
    flat = storages.get(id(root))
    if flat is None:
        spec = TensorSpec.contiguous((max(root.nbytes() // t.dtype.itemsize, 1),), t.dtype, t.device)
        flat = storages[id(root)] = fake(spec)
    if flat.dtype is not t.dtype:
        raise NotImplementedError("fakes_like: two inputs share memory as different dtypes; clone() one of them")
    return _native.alias(flat, tuple(t.shape), tuple(t.stride()), t.storage_offset())  # type: ignore[no-any-return]


def _like(t: Tensor, stand_in: Tensor) -> Tensor:
    if t._is_param:
        stand_in._is_param = True
    if not t.requires_grad:
        return stand_in
    if t.is_leaf:
        stand_in._requires_grad = True
    else:
        attach([stand_in], [fake(spec_of(t), True)], lambda grads: grads, "History")
    return stand_in
