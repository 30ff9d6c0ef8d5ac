"""The record that backward walks: nodes, edges, hooks and the state of the recording.

`node` holds the graph of gradient functions (start there), `record` adds nodes for an op, `inplace` rebases history when a
tensor is written to, `hooks` are the gradient hooks, `state` the per-thread state. `eager.autograd` has the engine.
"""
