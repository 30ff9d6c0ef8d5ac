"""The pipeline: `backend` is the entry (start there), `compile` runs the stages.

`autotune` measures products, `cpu_autotune` and `gpu_autotune` measure schedules of the other kernels.
"""
