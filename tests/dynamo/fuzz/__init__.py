"""Random Python programs, run eager and captured and compared in everything that a user can see.

`python -m tests.dynamo.fuzz --programs 1000 --seed 0 --mode default` prints each difference with the shortest program
that still shows it. `words` writes expressions, `sentences` statements, `programs` whole modules; `observe` runs one
and writes down what happened; `shrink` makes a failing one short.
"""
