"""Helpers of the backend: `toolchain` finds and runs the C++ compiler, `build` makes libraries with it, `options` and `request`
describe one compilation, `records` are measurements on disk, `user_lines` connects kernels to the user's code.
"""
