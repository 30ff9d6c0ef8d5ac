"""`torch._dynamo._trace_wrapped_higher_order_op`: the one name of it that model code imports."""

from __future__ import annotations

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A block in which `x[i]` with a tensor `i` of no dims indexes by the tensor and requests no number.

    In torch that needs a mode, for masks written as functions of positions and mapped by `vmap`. Here indexing never
    reads the value of a batched tensor, so the block changes nothing.
    """

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *exc: object) -> None:
        return None
