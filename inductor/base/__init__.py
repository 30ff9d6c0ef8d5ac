"""Helpers of the backend: `toolchain` runs the C++ compiler, `options` and `request` describe one compilation, `records` are
measurements on disk, `user_lines` connects kernels to the user's code.
"""
