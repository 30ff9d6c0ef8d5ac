"""The second target: the same loop nodes printed as Triton kernels, checked without a GPU."""
