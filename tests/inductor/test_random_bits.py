"""Random numbers of loops: interpreted loops and compiled code draw the bits that the eager kernel draws."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import eager as torch
from eager.base import dtypes
from eager.base.spec import fake_like
from eager.optable.random import draw_words
from eager.optable.table import OPS
from fxir.base.options import CompileOptions, GraphKind
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from inductor.loops.interpret import interpret
from inductor.lowering import lower
from inductor.plan.kernels import nest_kernel
from inductor.plan.schedule import Nest, schedule

SEED = 0x8765432112345678 - (1 << 64)
OFFSETS = [0, (1 << 32) - 9]  # the second overflows the lower half of the counter


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("of", [dtypes.float32, dtypes.float64], ids=lambda t: t.name)
def test_interpreted_loops_draw_the_eager_bits(of: dtypes.dtype, offset: int) -> None:
    state = torch.tensor([SEED, offset])
    shape = (3, 7)
    made = schedule(lower(trace(lambda s: (OPS["philox_uniform"](s, shape, of),), [fake_like(state)])))
    (step,) = made.steps
    assert isinstance(step, Nest)
    kernel = nest_kernel(step, {n: b.layout.dtype for n, b in made.program.buffers.items()}, [step.members[-1].name], {})
    memory = {n: state.numpy().copy() if n.startswith("m") else np.zeros(math.prod(shape), of.numpy) for n in kernel.names}
    interpret(kernel.kernel, memory)
    assert np.array_equal(memory["b0"].reshape(shape), OPS["philox_uniform"](state, shape, of).numpy())


@pytest.mark.parametrize("offset", OFFSETS)
def test_compiled_code_draws_the_eager_bits(offset: int) -> None:
    """Rows that end within a vector, a transposed draw, and a mask of bools."""

    def draw(state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u = OPS["philox_uniform"](state, (21, 37), dtypes.float32)
        return u, u.t() * 2, u >= 0.5, OPS["philox_uniform"](state, (45,), dtypes.float64)

    state = torch.tensor([SEED, offset])
    expected, found = draw(state), torch.compile(draw)(state)
    (words,) = draw_words(np, SEED, offset, 21 * 37, 1)
    assert np.array_equal(found[0].numpy().ravel(), (words >> 8).astype(np.float32) * np.float32(2.0**-24))
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(expected, found, strict=True))


def test_compiled_normals_are_the_eager_normals() -> None:
    def draw(state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(OPS["philox_normal"](state, (5, 77), of) for of in (dtypes.float32, dtypes.float64))

    state = torch.tensor([SEED, OFFSETS[1]])
    for a, b in zip(draw(state), torch.compile(draw)(state), strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5) and len(a.unique()) > 380


def test_the_key_is_split_outside_of_the_loop() -> None:
    """Inside, gcc would call the scalar form for each lane: a draw took five times longer than a draw that masks another tensor."""
    compiled = compile_graph(trace(lambda: (torch.rand(4096)[::2] * 2,), []), GraphKind.INFERENCE, CompileOptions())
    (text,) = [x for x in compiled.artifact.entry.sources().values() if "namespace k0" in x]
    before, inside = text[text.index("namespace k0") :].split("#pragma omp simd")[:2]
    inside = inside[: inside.index("}")]
    (key,) = re.findall(r"fj_philox_1_0\((\w+), (\w+),", inside)
    assert all(f"const u32 {half} = " in before for half in key)
