"""A capture made the arguments of a temporary module with plain dicts, which `Sequential` takes for a module."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.api import compile as api
from eager import nn


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.SiLU(), nn.Linear(3, 2))


class Sliced(Layers):
    def forward(self, x: Any) -> Any:
        return self.layers[1:](x)


class Named(Layers):
    def forward(self, x: Any) -> Any:
        return nn.Sequential(OrderedDict(first=self.layers[0], last=self.layers[2]))(x)


@pytest.mark.parametrize("kind", [Sliced, Named])
def test_a_module_made_of_an_ordered_dict_is_captured(kind: type[Layers]) -> None:
    dynamo.reset()
    net, x = kind(), torch.randn(4, 3)
    compiled = dynamo.compile(net, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), net(x))
    assert len(api.statistics().graphs) == 1 and not api.statistics().fallbacks
