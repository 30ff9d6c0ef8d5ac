"""Guard kinds: the files written from the table, and the guards of real captures, which run no Python function of the user and
name the user's line that needs them."""

from __future__ import annotations

import functools
import types

import pytest

import dynamo
import eager as torch
from dynamo._native import GuardProgram
from dynamo.guards import kind_files
from dynamo.guards.kinds import KINDS, Phase
from eager import _native, nn
from eager.amp import autocast_mode
from tests.dynamo.guards.states import STATES

# Queries about the process that only Python code of this project answers; few programs make them.
PYTHON_QUERIES = {torch.get_num_threads, torch.get_num_interop_threads, autocast_mode.default_dtypes}
OF_THE_CALL = {"grad_mode", "ambient", "same", "distinct", "alias", "not_alias", "shape"}  # these do not belong to one line


def test_the_native_header_and_the_stub_come_from_the_table() -> None:
    assert kind_files.HEADER.read_text() == kind_files.header(), "run python -m dynamo.guards.kind_files"
    stub = kind_files.STUB.read_text()
    assert stub == kind_files.stub(stub), "run python -m dynamo.guards.kind_files"


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_the_native_code_checks_the_number_of_operands(kind) -> None:
    with pytest.raises(TypeError, match=rf'"{kind.name}"\) has {len(kind.operands) + 2} operands; expected {len(kind.operands)}'):
        GuardProgram([(kind.name, *[None] * (len(kind.operands) + 2))], 1)


def test_every_kind_is_run_by_the_native_code() -> None:
    source = (kind_files.HEADER.parent / "guards.c").read_text()
    assert [kind.name for kind in KINDS.values() if f"case {kind.c_name}:" not in source] == []


def test_every_kind_of_a_guard_has_words() -> None:
    native_only = {"held_type", "function_is"}  # the builder chooses these for guards of kinds "type" and "is"
    checks = [kind for kind in KINDS.values() if kind.phase in (Phase.CHECK, Phase.RELATION) and kind.name not in native_only]
    assert [kind.name for kind in checks if not kind.words and kind.fact is None] == []


def _guards() -> list:
    dynamo.reset()
    x = torch.tensor([0.5, -1.5])
    made = [make() for make in STATES.values()]
    compiled = [dynamo.compile(state.read, backend="eager") for state in made]
    try:
        for fn in compiled:
            fn(x)
        return [g for fn in compiled for v in _variants(fn) for g in v.guards]
    finally:
        for state in made:
            state.close()


def _variants(compiled) -> list:
    inner = getattr(compiled, "_compiled_call", getattr(compiled, "__func__", compiled))
    return [v for region in dynamo.api.compile.all_regions() for fn, site in region.function_sites if fn is inner for v in site.variants]


def test_guards_run_no_python_code_and_name_their_line() -> None:
    guards = _guards()
    kinds = {g.kind for g in guards}
    assert {"is", "type", "tensor", "int_eq", "len", "dict_keys", "dict_absent", "type_absent", "const_eq", "grad_mode", "ambient"} <= kinds
    for g in guards:
        if g.kind == "call_eq":
            asked = g.operands[0].func if isinstance(g.operands[0], functools.partial) else g.operands[0]
            assert isinstance(asked, types.BuiltinFunctionType) or asked in PYTHON_QUERIES, g.note
        assert g.origin is not None or g.kind in OF_THE_CALL, g.note
        assert g.note


class _Chain(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU()) for _ in range(n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def _each_call(module: nn.Module) -> list[str]:
    """The instructions of the module's guard program that no watched block holds."""
    compiled = dynamo.compile(module, backend="eager")
    compiled(torch.ones(2, 4))
    (entry,) = compiled._compiled_call.entries()
    return [text.split()[0] for _, text, _ in entry.program.describe() if not text.startswith("  ")]


def test_a_module_tree_adds_no_check_to_a_call() -> None:
    assert _each_call(_Chain(12)) == _each_call(_Chain(1))


def test_the_class_of_a_registry_is_sealed() -> None:
    registry = nn.Linear(1, 1)._parameters
    with pytest.raises(TypeError, match="__class__ assignment"):
        registry.__class__ = type("Other", (dict,), {"__slots__": ("__weakref__",)})
    with pytest.raises(TypeError, match="immutable type"):
        type(registry).__len__ = lambda self: 0
    with pytest.raises(TypeError, match="can still change"):
        _native.seal_type(type("Derived", (type("Base", (), {}),), {}))
    with pytest.raises(TypeError, match="expected a class"):
        _native.seal_type(1)
