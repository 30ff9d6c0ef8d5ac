"""What a compiled variant relies on, and the native program that checks it.

`sources` describes where a value comes from, `program` builds and explains guards (start there), `shape_guards` turns relations
between sizes into guard steps.
"""
