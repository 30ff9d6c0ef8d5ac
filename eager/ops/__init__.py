"""The op table: importing this package declares every family. `eager.ops.table.OPS` holds them by name."""
from eager.ops import creation, matmul, pointwise, random, reduction, table, views

__all__ = ["creation", "matmul", "pointwise", "random", "reduction", "table", "views"]
