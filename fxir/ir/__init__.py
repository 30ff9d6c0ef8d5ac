"""The graph, and the code that reads or rewrites graphs without running autograd.

- `node`, `node_sequence`, `graph`: the data structure (start there).
- `graph_module` makes a graph callable, and runs it node by node.
- `printer` writes it as Python that runs; `listing` writes it for logs.
- `verifier` checks it; `passes` rewrites it.
- `fingerprint` hashes its canonical form for cache keys; `graph_file`, `folder` and `pickling` save it.
"""
