"""Accuracy of the numerical kernels against float64 or exact references, beside torch's.

`python -m tests.accuracy` prints two tables: reductions, scans and statistics by layout and size (`reductions`), and
transcendental functions in units in the last place (`functions`). A row is marked if our error is more than twice
torch's. torch runs in a subprocess (`--torch-python`); without it the stored figures of tests/data/accuracy_torch.json
are used.

Each half is a module with `TITLE`, `HEADERS`, `UNIT`, `FLOOR` and `measure(torch, mode) -> dict[str, float]`; see
`table.Half`. `measure` imports neither torch nor eager: the module it measures is its argument, so one definition
serves both sides.
"""
