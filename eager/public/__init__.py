"""The layer between ops and the functions that users call: one record and one wrapper per public function.

`record` holds the decorator `public`, which states beside a function's body what torch does around it: `out=`, numpy's names of
arguments, former orders of arguments, autocast, the types of arguments. `wrapper` builds the one wrapper for a record; `steps`
holds the steps of a wrapper that few calls need. `argument_types` checks arguments by annotations and names, `matching` by
torch's schemas. Start reading at `record`.
"""
