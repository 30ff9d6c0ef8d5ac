"""What guards are made of: no Python function runs in them, and each names the user's line that made it."""

from __future__ import annotations

import functools
import types

import dynamo
import eager as torch
from eager.amp import autocast_mode
from tests.dynamo.states import STATES

# Questions about the process that only Python code of this project answers; functions that ask them are rare.
PYTHON_QUESTIONS = {torch.get_num_threads, torch.get_num_interop_threads, autocast_mode.default_dtypes}
OF_THE_CALL = {"grad_mode", "ambient", "same", "distinct", "alias", "not_alias", "shape"}  # not of one line


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
    return [v for region in dynamo.api.REGIONS for fn, site in region.function_sites if fn is inner for v in site.variants]


def test_guards_run_no_python_code_and_name_their_line() -> None:
    guards = _guards()
    kinds = {g.kind for g in guards}
    assert {"is", "type", "tensor", "int_eq", "len", "dict_keys", "dict_absent", "type_absent", "const_eq", "grad_mode", "ambient"} <= kinds
    for g in guards:
        if g.kind == "call_eq":
            asked = g.operands[0].func if isinstance(g.operands[0], functools.partial) else g.operands[0]
            assert isinstance(asked, types.BuiltinFunctionType) or asked in PYTHON_QUESTIONS, g.note
        assert g.origin is not None or g.kind in OF_THE_CALL, g.note
        assert g.note
