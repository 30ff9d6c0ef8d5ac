"""vmap: a function of one row as a function of a batch of them."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.base.pytree.tree import TreeSpec, broadcast_to_and_flatten, tree_flatten, tree_unflatten
from eager.base.spec import normalize_dim
from eager.optable.table import OPS
from eager.transforms import rules  # noqa: F401 - registers the batching rules
from eager.transforms.batching import Batching
from eager.transforms.level import Wrapped, raw_value
from eager.transforms.stack import name_of, next_depth

TensorBase = _native.TensorBase
Dims = Any


def vmap(func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:  # fmt: skip
    """`func`, mapped over a dim of its tensor arguments.

    in_dims: an int, or a tree that fits the tuple of positional arguments, of ints and None (not mapped).
    out_dims: position of the batch dim in the results; None for a result that does not depend on the batch.
    randomness: "error", "same" (one draw for all rows) or "different". chunk_size: number of rows in one call.
    Raises: ValueError for dims that do not fit; RuntimeError if `func` reads the data of a row.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    if isinstance(chunk_size, bool):
        raise TypeError("vmap: chunk_size should be None or an int, got a bool")

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, leaves, dims, spec = _process_inputs(in_dims, args, func)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, leaves, dims, spec, out_dims, randomness, kwargs)
        return _run_chunked(func, size, leaves, dims, spec, out_dims, randomness, kwargs, chunk_size)

    return wrapped


def _process_inputs(in_dims: Dims, args: tuple[Any, ...], func: Callable[..., Any]) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """(rows, flat arguments, the mapped dim of each or None, their structure)."""
    name = name_of(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims)}.")  # fmt: skip
    if not args:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
                         "function with no inputs. The latter is unsupported.")  # fmt: skip
    leaves, spec = tree_flatten(args)
    dims = broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. "
                         f"in_dims has structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}.")  # fmt: skip
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if d is None:
            continue
        if isinstance(d, bool):
            raise TypeError("_add_batch_dim(): argument 'batch_dim' (position 2) must be int, not bool")
        if not isinstance(d, int):
            raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for an input but in_dim must be either an "
                             "integer dimension or None.")  # fmt: skip
        if not isinstance(x, TensorBase):
            raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for an input but the input is of type "
                             f"{type(x)}. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim")  # fmt: skip
        if not -x.ndim <= d < x.ndim:
            raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for some input, but that input is a "
                             f"Tensor of dimensionality {x.ndim} so expected in_dim to satisfy -{x.ndim} <= in_dim < "
                             f"{x.ndim}.")  # fmt: skip
        dims[i] = d % x.ndim
    sizes = [x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: at least one of the inputs must be mapped over, but in_dims is None for all of them")
    if any(n != sizes[0] for n in sizes):
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                         f"{sizes} for the mapped dimension")  # fmt: skip
    return int(sizes[0]), leaves, dims, spec


def _to_front(x: Any, dim: int) -> Any:
    return x if dim == 0 else OPS["permute"](x, (dim, *(d for d in range(x.ndim) if d != dim)))


def _from_front(y: Any, dim: int) -> Any:
    d = normalize_dim(dim, y.ndim)
    return y if d == 0 else OPS["permute"](y, (*range(1, d + 1), 0, *range(d + 1, y.ndim)))


def _run(func: Callable[..., Any], size: int, leaves: Sequence[Any], dims: Sequence[Any], spec: TreeSpec, out_dims: Dims,
         randomness: str, kwargs: dict[str, Any]) -> Any:  # fmt: skip
    level = Batching(next_depth(), size, randomness)
    rows = [x if d is None else level.wrap(_to_front(x, d)) for x, d in zip(leaves, dims, strict=True)]
    level.over_fakes = any(isinstance(x, TensorBase) and raw_value(x).is_fake for x in leaves)
    with level:
        output = func(*tree_unflatten(rows, spec), **kwargs)
    ys, out_spec = tree_flatten(output)
    flat_dims = _flat_out_dims(out_dims, ys, out_spec, func)
    return tree_unflatten([_result(level, y, d, func) for y, d in zip(ys, flat_dims, strict=True)], out_spec)


def _flat_out_dims(out_dims: Dims, ys: Sequence[Any], spec: TreeSpec, func: Callable[..., Any]) -> list[Any]:
    dims = [out_dims] if isinstance(ys[0] if len(ys) == 1 else None, TensorBase) and spec.is_leaf() and isinstance(
        out_dims, int) else broadcast_to_and_flatten(out_dims, spec)  # fmt: skip
    if dims is None and spec.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = list(out_dims)
    if dims is None:
        raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
                         f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}.")  # fmt: skip
    for d in dims:
        if d is not None and not isinstance(d, int):
            raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a tree of them")
    return dims


def _result(level: Batching, y: Any, dim: int | None, func: Callable[..., Any]) -> Any:
    """A result without its wrapper, its rows along `dim`; what does not depend on the batch is repeated."""
    name = name_of(func)
    if dim is None:
        if level.is_batched(y):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return y
    if not isinstance(y, TensorBase):
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)}. Did you mean to set out_dims= to "
                         "None for output?")  # fmt: skip
    if y.is_fake and not isinstance(y, Wrapped) and not level.over_fakes:
        raise RuntimeError(f"vmap({name}, ...): the result was made by a function that goes round the dispatch of ops, which vmap does "
                           "not support")  # fmt: skip
    return _from_front(level.front(y), dim)


def _run_chunked(func: Callable[..., Any], size: int, leaves: Sequence[Any], dims: Sequence[Any], spec: TreeSpec, out_dims: Dims,
                 randomness: str, kwargs: dict[str, Any], chunk: int) -> Any:  # fmt: skip
    parts, out_spec, flat_dims = [], None, []
    for at in range(0, size, chunk):
        rows = [x if d is None else OPS["slice"](x, d, at, at + chunk, 1) for x, d in zip(leaves, dims, strict=True)]
        ys, out_spec = tree_flatten(_run(func, min(chunk, size - at), rows, dims, spec, out_dims, randomness, kwargs))
        flat_dims = _flat_out_dims(out_dims, ys, out_spec, func)
        parts.append(ys)
    assert out_spec is not None
    joined = [column[0] if d is None else OPS["cat"](list(column), d % column[0].ndim)
              for column, d in zip(zip(*parts, strict=True), flat_dims, strict=True)]  # fmt: skip
    return tree_unflatten(joined, out_spec)


def call_batched(fn: Callable[..., Sequence[Any]], rows: Sequence[Any]) -> Sequence[Any]:
    """`fn` over the leading dim of all of `rows`; results that are None stay None."""
    level = Batching(next_depth(), rows[0].shape[0], "error")
    with level:
        found = fn(*(level.wrap(r) for r in rows))
    return [None if y is None else level.front(y) for y in found]
