"""The graph and everything that reads one without running autograd.

`node` and `graph` hold the data structure (start there), `graph_module` makes a graph callable, `interpreter` runs it node by
node, `printer` and `codegen` write it as Python, `verifier` checks it, `fingerprint` hashes its canonical form for cache keys,
`graph_file` and `folder` save it, `emit` adds nodes together with their specs, and `passes` rewrites it.
"""
