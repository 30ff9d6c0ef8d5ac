"""Measurements of framejit against eager execution, against torch if it is installed, and the demo.

`python -m benchmarks NAME` runs one of `overhead`, `models`, `kernels`, `eager`, `guards` and `dynamic`; `harness` times and
reports (start there). `peers` runs rows of `kernel_rows` in measuring processes (`worker`). `python -m benchmarks.demo` runs the demo.
"""
