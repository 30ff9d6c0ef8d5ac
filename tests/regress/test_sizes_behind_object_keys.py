"""The memory of sizes knew inputs by name, and values of a dict under different objects had one name: their sizes became symbols."""
from __future__ import annotations

import dynamo
import eager as torch
from dynamo.api import compile as api


class Key:
    """A key that is an object without a text."""


def test_tensors_of_different_sizes_under_object_keys_are_static() -> None:
    dynamo.reset()
    table = {Key(): torch.ones(n) for n in (3, 4, 5)}

    def total() -> torch.Tensor:
        return sum((t.sum() for t in table.values()), torch.zeros(()))

    compiled = dynamo.compile(total, backend="eager", fullgraph=True)
    assert float(compiled()) == 12
    (graph,) = api.statistics().graphs
    sizes = [tuple(node.info.spec.shape) for node in graph.graph.in_order() if node.op == "placeholder"]
    assert sizes == [(3,), (4,), (5,)]
    assert all(type(n) is int for size in sizes for n in size)
