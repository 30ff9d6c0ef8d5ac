"""The second target: the same loop definitions printed as Triton kernels, which compile without a GPU."""
