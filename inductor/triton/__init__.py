"""The second target: scheduled loop trees printed as Triton kernels, which compile without a GPU.

`loops` prints a tree whose loops run over programs and tiles (`inductor.plan.gpu_schedule` makes it), `values` its operations,
`combines` its reductions; `kernel` is the record of a printed kernel, and `compile` makes machine code of it.
"""
