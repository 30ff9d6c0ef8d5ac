"""C++ for the CPU: `loops` prints loop trees (start there) with `values` for operations, `kernel` is the record of a printed kernel.

`gemm` and `gemm_core` print matrix products, with `epilogue` for the loops that run on their blocks. `prelude`, `vector_math` and
`random_bits` are
the functions that generated code calls, and `units` collects the texts into source files.
"""
