"""`torch.fx.CodeGen`, `Graph.set_codegen`, `Graph.on_generate_code` and `GraphModule.to_folder`."""
from __future__ import annotations

import copy
import importlib
import pickle
import typing
from pathlib import Path
from typing import Any

import pytest

import eager
from eager.nn import Module
from fxir import CodeGen, Interpreter, symbolic_trace

torch: Any = eager


class Model(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(2, 3)
        self.rest = torch.nn.Sequential(torch.nn.ReLU())
        self.scale = torch.nn.Parameter(torch.ones(3) * 2)
        self.register_buffer("shift", torch.arange(3.0))

    def forward(self, x: Any, y: Any) -> Any:
        return self.rest(self.first(x)) * self.scale + y + self.shift


class ListCodeGen(CodeGen):
    """One list in the place of the arguments."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        return f"""
def forward(self, args_list: List[torch.Tensor]){maybe_return_annotation}:
    {', '.join(free_vars)} = args_list"""

    def generate_output(self, output_args: Any) -> str:
        return f"return [{output_args!r}]"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("List", typing.List)]  # noqa: UP006 - as programs write it

    def process_inputs(self, *args: Any) -> Any:
        (inputs,) = args
        return inputs

    def process_outputs(self, outputs: Any) -> Any:
        return [outputs]


def arguments() -> tuple[Any, Any]:
    return torch.randn(4, 2), torch.randn(3)


def test_a_codegen_changes_the_printed_function_and_its_runs() -> None:
    model = Model()
    module = symbolic_trace(model)
    x, y = arguments()
    module.graph.set_codegen(ListCodeGen())
    module.recompile()
    assert "def forward(self, args_list: List[torch.Tensor]):\n    x, y = args_list\n" in module.code
    for run in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)), Interpreter(module).run):
        (out,) = run([x, y])
        assert torch.equal(out, model(x, y))
    module.graph.set_codegen(CodeGen())
    assert torch.equal(module(x, y), model(x, y))


def test_a_transformer_of_the_code_is_in_force_until_its_block_ends() -> None:
    module = symbolic_trace(Model())
    x, y = arguments()
    ran: list[str] = []
    torch.nowhere = ran.append  # the inserted line calls it
    with module.graph.on_generate_code(lambda _: lambda body: ["import eager; eager.nowhere('first')\n", *body]):
        module.recompile()
        assert module.code.partition("forward(self, x, y):\n    ")[2].startswith("import eager; eager.nowhere('first')\n    first")
        second = "import eager; eager.nowhere('second')\n"
        chain = module.graph.on_generate_code(lambda now: lambda body: [second, *(now(body) if now else body)])
        with chain:
            module(x, y)
        module(x, y)
    module(x, y)
    del torch.nowhere
    assert ran == ["second", "first", "first"]


def test_a_folder_holds_a_package_with_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match=r"saved as pickled files instead: \['rest'\]"):
        symbolic_trace(model).to_folder(tmp_path / "written_module", "Written")
    made = importlib.import_module("written_module").Written()
    x, y = arguments()
    assert torch.equal(made(x, y), model(x, y))
    assert sorted(made.state_dict()) == sorted(model.state_dict())


def test_a_captured_graph_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    graphs: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        graphs.append(gm)
        return gm.forward

    torch.compile(lambda x: x.sin() + torch.tensor([1.0, 2.0]), backend=backend)(torch.ones(2))
    graphs[0].to_folder(tmp_path / "written_graph")
    made = importlib.import_module("written_graph").FxModule()
    (out,) = made(torch.ones(2))
    assert torch.equal(out, torch.ones(2).sin() + torch.tensor([1.0, 2.0]))
