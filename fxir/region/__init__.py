"""A compiled region: graphs of a captured program together with the eager autograd around them.

`aot` compiles a captured graph ahead of time (start there), `runtime` runs the result and its backward, `double_backward` and
`interior_gradients` handle second derivatives and gradients of intermediates, `data_dependent` compiles graphs whose sizes
depend on data, and `repro` writes scripts that reproduce a failure.
"""
