"""Every op of the table compiles: eager against compiled, forward and gradient, on the op's own samples."""
import pytest

import eager as torch
from eager.optable.registry import Kind
from eager.optable.samples import Make
from eager.optable.table import OPS

SKIPPED = {
    "rng_state": "advances the generator; its values are tested through the random functions",
    "empty": "has undefined contents",
}
NAMES = sorted(n for n, op in OPS.items() if op.samples is not None and n not in SKIPPED)
TensorBase = torch.Tensor


def _clone(value):
    if isinstance(value, TensorBase):
        made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        return made.copy_(value)
    return [_clone(v) for v in value] if isinstance(value, list) else value


def _tensors(args):
    for a in args:
        if isinstance(a, TensorBase):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from _tensors(a)


def _outputs(result):
    return [result] if isinstance(result, TensorBase) else list(result)


def _run(fn, args, gradients):
    """Outputs, the arguments afterwards, and gradients of the floating inputs."""
    args = [_clone(a) for a in args]
    leaves = [t for t in _tensors(args) if t.is_floating_point()] if gradients else []
    for t in leaves:
        t.requires_grad = True
    outputs = _outputs(fn(*args))
    wanted = [y for y in outputs if y.requires_grad]
    grads = []
    if wanted:
        weights = [torch.ones_like(y) * 0.5 for y in wanted]
        grads = torch.autograd.grad(wanted, leaves, weights, allow_unused=True)
    return outputs, list(_tensors(args)), list(grads)


def _agree(got, want):
    if want is None or got is None:
        assert got is None and want is None
        return
    assert got.shape == want.shape and got.dtype is want.dtype and got.stride() == want.stride()
    got, want = got.detach(), want.detach()
    if want.is_floating_point():
        tolerance = 2e-2 if want.dtype.itemsize == 2 else 2e-5
        assert torch.allclose(got.double(), want.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        assert torch.equal(got, want)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_op_equals_eager(name):
    op = OPS[name]
    for sample in op.samples(Make(seed=7)):
        torch.compiler.reset()
        differentiable = bool(op.vjp or op.decompose) and not op.underived and op.kind is not Kind.INPLACE
        compiled = torch.compile(lambda *args: op(*args), fullgraph=not op.dynamic_output)  # noqa: B023
        try:
            want = _run(op, sample, differentiable)
        except RuntimeError as error:  # an in-place form whose result does not fit: compiled says the same
            with pytest.raises(type(error)) as raised:
                _run(compiled, sample, differentiable)
            assert str(raised.value) == str(error)
            continue
        got = _run(compiled, sample, differentiable)
        for w, g in zip(want, got, strict=True):
            assert len(w) == len(g)
            for a, b in zip(g, w, strict=True):
                _agree(a, b)


def test_only_explained_ops_are_left_out():
    missing = {n for n, op in OPS.items() if op.samples is None and not op.is_custom}
    assert missing <= set(SKIPPED), f"ops without samples: {sorted(missing - set(SKIPPED))}"
