"""Memory formats: the orders of dims that `contiguous`, `clone` and `to` accept."""
from __future__ import annotations


class memory_format:  # noqa: N801 - torch's name
    """An order of dims in memory. name: its name in the schemas of ops."""

    __slots__ = ("name", "_shown")

    def __init__(self, name: str, shown: str) -> None:
        self.name = name
        self._shown = shown

    def __repr__(self) -> str:
        return f"torch.{self._shown}"

    def __reduce__(self) -> tuple[object, ...]:
        return (by_name, (self.name,))


contiguous_format = memory_format("contiguous", "contiguous_format")
legacy_contiguous_format = contiguous_format  # an older name of torch's
preserve_format = memory_format("preserve", "preserve_format")
channels_last = memory_format("channels_last", "channels_last")
channels_last_3d = memory_format("channels_last_3d", "channels_last_3d")


def by_name(name: str) -> memory_format:
    """The format called `name`. Raises KeyError."""
    return {f.name: f for f in (contiguous_format, preserve_format, channels_last, channels_last_3d)}[name]


class layout:  # noqa: N801 - torch's name
    """How a tensor's elements are kept. Every tensor here is strided; the names of sparse ones exist to be compared with."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


LAYOUTS = {f"torch.{name}": layout(name) for name in (
    "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")}  # fmt: skip
strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged = LAYOUTS.values()
