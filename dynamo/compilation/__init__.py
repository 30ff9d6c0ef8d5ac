"""From a call that no compiled variant matches to a new variant.

`region` holds everything that one `compile()` has compiled: start there. `site` describes where compiled code can start, `attempt`
compiles one variant, `module` wraps a compiled `nn.Module`, and `export` captures a whole program for `torch._dynamo.export`.
"""
