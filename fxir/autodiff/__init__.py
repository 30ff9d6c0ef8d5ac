"""From a functional graph to a forward and a backward graph.

`joint` traces the gradient formulas after the forward ops (start there), `partition` splits the joint graph by a minimum cut,
`reachability` finds which inputs need gradients, and `drop_tangents` removes tangents that no output depends on.
"""
