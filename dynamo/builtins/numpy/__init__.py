"""numpy under capture: `table` finds the rule of a function, `rules` computes the function with tensors, `calls`
records the call.
"""
