"""Measurements of framejit against eager execution, against torch if it is installed, and the demo.

`python -m benchmarks NAME` runs one of `overhead`, `models`, `kernels`, `eager`, `guards` and `dynamic`; `harness` times and
reports (start there). `kernels` and `models` measure the rows of `kernel_rows` and `model_rows` in processes of each library
(`worker`), which take turns (`peers`). `python -m benchmarks.demo` runs the demo.
"""
