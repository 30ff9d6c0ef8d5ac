"""The layer between ops and the functions that users call: one record and one wrapper per public function.

`record` holds the decorator `public`, which states beside a function's body what torch does around it: `out=`, numpy's names of
arguments, former orders of arguments, autocast, the types of arguments. `wrapper` builds the one wrapper for a record: it
checks the arguments by annotations and names, or by torch's schemas (`matching`), and runs the steps that few calls need. Start
reading at `record`.
"""
