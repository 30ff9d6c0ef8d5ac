"""From a call that no compiled variant matches to a new variant.

`region` holds everything that one `compile()` has compiled: start there. `attempt` compiles one variant of a site, a place where
compiled code can start, `module` wraps a compiled `nn.Module`, and `export` captures a whole program for `torch._dynamo.export`.
"""
