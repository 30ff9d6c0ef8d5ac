"""Plans: which definitions share a kernel, how its loops run, and where its buffers are.

`schedule` groups definitions and decides which results need memory (start there), after `attention` has found attention that a program
writes out and `updates` has brought programs that overwrite inputs to one form; `kernels` makes the loops of each group, once for equal
groups, `heuristics` chooses the steps that change them, `in_place` finds results that are stored into the input that they overwrite,
and `memory` places the other buffers in one arena.
"""
