"""CPython's own tests of the language, each test function captured.

`python -m tests.dynamo.cpython test_generators test_with` runs modules of the interpreter's `test` package with every
test function under `dynamo.compile(backend="eager")`, and compares outcomes with eager runs. `modules` lists the modules.
"""
