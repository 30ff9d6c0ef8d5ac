"""Every public name of torch 2.13, and every private name that programs import, resolves or raises with the reason from one table."""
from __future__ import annotations

import functools
import gzip
import importlib
import json
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import eager
from eager.startup import absent_names
from eager.startup.torch_names import real_name

NAMES: dict[str, list[str]] = json.loads(gzip.decompress((Path(__file__).parents[1] / "data" / "torch_names.json.gz").read_bytes()))
CLASSES = {"torch." + name for name in (
    "Tensor nn.Module optim.Optimizer Generator cuda.Stream cuda.Event fx.Graph fx.Node fx.GraphModule fx.Tracer fx.Interpreter "
    "distributions.Distribution nn.utils.rnn.PackedSequence dtype device Size UntypedStorage").split()}  # fmt: skip


def _found(name: str) -> Any:
    """The module or class that torch calls `name`. Raises: ImportError, AttributeError."""
    found: Any = eager
    try:
        if name not in CLASSES:
            return importlib.import_module(real_name(name))
        return functools.reduce(getattr, name.split(".")[1:], found)
    except ModuleNotFoundError:
        found = functools.reduce(lambda x, part: getattr(x, part, None), name.split(".")[1:], found)
        if not isinstance(found, types.ModuleType):
            raise
        return found


def _wrong(module: str) -> list[str]:
    try:
        found = _found(module)
    except ModuleNotFoundError as error:
        why = absent_names.reason(module)
        if why and (why in str(error) or "is not a package" in str(error)):  # Python's message about the parent
            return []
        return [f"{module}: {error}"]
    wrong = []
    for name in NAMES[module]:
        try:
            getattr(found, name)
        except AttributeError as error:
            why = absent_names.reason(f"{module}.{name}")
            if why is None or (why not in str(error) and (module == "torch.Tensor" or module not in CLASSES)):
                wrong.append(f"{module}.{name}: {error}")
    return wrong


def test_every_name_of_torch_resolves_or_has_its_reason() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [line for module in NAMES for line in _wrong(module)]
    assert not wrong, "\n".join(wrong)
    assert sum(map(len, NAMES.values())) > 5000


@pytest.mark.parametrize("statement", ["import eager.quantization", "from eager import quantization, qint8", "from eager import qint8",
                                       "from eager.nn import quantized", "import eager.nn.quantized.dynamic"])  # fmt: skip
def test_import_statements_give_the_reason(statement: str) -> None:
    with pytest.raises(ImportError, match="quantization is not part of this project"):
        exec(statement)


@pytest.mark.parametrize("statement", [
    "import eager._guards", "from eager._functorch.partitioners import must_recompute", "from eager.testing._internal import common_utils",
    "from eager._subclasses.fake_tensor import FakeTensorMode", "from eager._C import _jit_set_profiling_mode",
    "from eager.nn import _Loss",
])  # fmt: skip
def test_import_statements_of_private_names_give_the_reason(statement: str) -> None:
    module, _, name = statement.removeprefix("from ").removeprefix("import ").partition(" import ")
    why = absent_names.reason(".".join(filter(None, (module.replace("eager", "torch", 1), name))))
    with pytest.raises(ImportError, match=f": {why}"):
        exec(statement)


def test_names_that_torch_lacks_have_no_reason() -> None:
    for call, error in ((lambda: eager.nowhere, "module 'eager' has no attribute 'nowhere'$"),
                        (lambda: eager.nn.functional.nowhere, "module 'eager.nn.functional' has no attribute 'nowhere'$")):  # fmt: skip
        with pytest.raises(AttributeError, match=error):
            call()
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'q_scale': quantization is not part"):
        eager.ones(1).q_scale  # type: ignore[attr-defined]
    assert not hasattr(eager.ones(1), "q_scale") and not hasattr(eager, "nested")


def test_the_reason_names_torch_where_the_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", eager)
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'qint8': quantization"):
        eager.qint8  # type: ignore[attr-defined]
