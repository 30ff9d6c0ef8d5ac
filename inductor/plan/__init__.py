"""Plans: which definitions share a kernel, how its loops run, and where its buffers are.

`schedule` groups definitions (start there) after `attention` has found attention that a program writes out and `updates` has brought
programs that overwrite inputs to one form, `bundles` decides which results need memory, `kernels` makes the loops of each group, once
for equal groups, `heuristics` chooses the steps that change them (`pieces`: where a loop is cut), `in_place` finds results that are
stored into the input that they overwrite, and `memory` places the other buffers in one arena.
"""
