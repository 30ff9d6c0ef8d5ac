"""The facts that a compiled variant relies on, and the native program that checks them.

`kinds` is the table of guard kinds: start there. `sources` says where a value comes from, `program` collects facts and builds the
native program, `shape_guards` turns a relation between sizes into the steps of a check, `wording` writes operands and values as
text, and `explain` reports failed guards.
"""
