"""Names that third-party modules use when they are imported."""

from __future__ import annotations

import pytest

import eager as torch
from fxir.ir.leaves import LEAVES


def helper(x: int) -> int:
    return x + 1


marked = torch.fx.wrap(helper)
torch.fx.wrap("len")


def test_marks_are_kept_and_functions_given_back() -> None:
    assert marked is helper
    assert {(__name__, "helper"), (__name__, "len")} <= LEAVES


def test_misuse_raises_as_in_torch() -> None:
    with pytest.raises(NotImplementedError, match="top level of a module"):
        torch.fx.wrap(helper)
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        torch.fx.wrap(3)


def test_names_that_models_import_resolve() -> None:
    from typing import List  # noqa: PLC0415, UP035

    from eager.hub import HASH_REGEX  # noqa: PLC0415
    from eager.jit import annotations, is_scripting  # noqa: PLC0415

    assert annotations.List is List  # noqa: UP006
    assert not is_scripting()
    found = HASH_REGEX.search("resnet18-f37072fd.pth")
    assert found is not None
    assert found.group(1) == "f37072fd"


def test_the_type_of_tensors_has_a_name_for_annotations() -> None:
    from eager import TensorType  # noqa: PLC0415

    assert TensorType.get() is TensorType.get()
    assert str(TensorType.get()) == "Tensor"
