"""Values of the captured program, by kind of Python value.

`protocols` has their base and `Machine`, through which a value reaches its capture (start there). `writer` has the
protocol through which values write themselves into generated code.
"""
