"""Laws A and B of the house: every file lies in a layer, layers are in a line, and no imports form a circle."""

from __future__ import annotations

import pytest

from .import_graph import PACKAGES
from .layers import LAYERS, circles, components, unlisted, upward


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_lies_in_a_layer(package: str) -> None:
    found = unlisted(package)
    assert not found, f"no layer of {package} names these: {found}"


@pytest.mark.parametrize("package", PACKAGES)
def test_files_import_from_their_layer_and_from_layers_before_it(package: str) -> None:
    found = upward(package)
    assert not found, "\n".join(f"{importer} imports {target}" for importer, target in found)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_imports_form_a_circle(package: str) -> None:
    found = circles(package)
    assert not found, "\n".join(" ".join(group) for group in found)


def test_a_circle_is_found() -> None:
    groups = components({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert sorted(map(sorted, groups)) == [["a", "b", "c"], ["d"]]


def test_layers_are_named_once() -> None:
    for layers in LAYERS.values():
        assert len(layers) == len(set(layers))
