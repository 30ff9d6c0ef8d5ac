"""The base layer of eager: data types and process state. It depends on neither ops, autograd nor the Tensor class.

Data: `dtypes` (with their promotion), `device`, `memory_format`, `scalars`, `float8`, `limits`, `spec` (shape, strides, dtype and
device of a tensor, and fake tensors, which have nothing else), `symint` and `symfloat` (symbolic numbers), `pytree`.
Process: `settings` (the only reader of the environment), `logs`, `machine`, `threads`, `thread_state`, `precision`, `flags`,
`hooks`, `warn`, `tracebacks`, `locks`.
"""
