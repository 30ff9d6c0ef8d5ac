"""From a captured graph of API calls to a functional graph of primitive ops.

`trace` runs the program on fakes and records ops (start there), `functionalize` turns writes into new values, and
`output_aliasing` records which outputs alias which inputs.
"""
