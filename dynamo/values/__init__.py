"""Values of the captured program, by kind of Python value.

`protocols` has their base and `Machine`, through which a value reaches the capture that it belongs to (start there); `writer` has
the protocol of the code generator that values write themselves with.
"""
