"""torch.library: ops of the user's own in eager and in graphs, their gradients, mutation, schemas and refusals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

import dynamo
import eager as torch
from eager import Tensor, library
from tests.dynamo.api.test_compile import Recorder

_numbers = itertools.count()


def _name(stem: str) -> str:
    return f"tests::{stem}_{next(_numbers)}"


@pytest.fixture
def scale():
    @library.custom_op(_name("scale"), mutates_args=())
    def scale(x: Tensor, by: float = 2.0) -> Tensor:
        return torch.from_numpy(x.numpy() * np.float32(by))

    scale.register_fake(lambda x, by=2.0: torch.empty_like(x))

    def setup(ctx, inputs, output):
        ctx.by = inputs[1]
        assert ctx.needs_input_grad == (True, False)

    scale.register_autograd(lambda ctx, g: (g * ctx.by, None), setup_context=setup)
    return scale


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_op_with_gradients_does_not_break_the_graph(scale, backend) -> None:
    def f(x):
        return scale(torch.relu(x) + 1, 3.0).sin()

    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    y = dynamo.compile(f, backend=backend, fullgraph=True)(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(y, f(x))
    assert torch.allclose(g, torch.autograd.grad(f(x).sum(), x)[0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_op_that_writes_its_argument(backend) -> None:
    @library.custom_op(_name("bump"), mutates_args=("x",))
    def bump(x: Tensor, n: int) -> None:
        x.numpy()[...] += n

    def f(x):
        y = x * 2
        bump(y, 3)
        z = y + 0
        bump(x, n=1)
        return y + 1, z, y[1:] * x[0]

    a, b = torch.ones(3), torch.ones(3)
    got, want = dynamo.compile(f, backend=backend, fullgraph=True)(a), f(b)
    assert all(torch.equal(s, t) for s, t in zip(got, want, strict=True))
    assert torch.equal(a, b)
    version = a._version
    bump(a, 1)
    assert a._version == version + 1


def test_an_op_that_writes_and_returns(scale) -> None:
    @library.custom_op(_name("both"), mutates_args=("x",))
    def both(x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        x.numpy()[...] *= 2
        return k + x, k - x

    both.register_fake(lambda x, k: (torch.empty_like(k), torch.empty_like(k)))

    def f(x, k):
        s, d = both(x, k)
        return s * d + x

    a, b = torch.ones(2), torch.ones(2)
    k = torch.tensor([1.0, 2.0])
    assert torch.equal(dynamo.compile(f, backend="aot_eager", fullgraph=True)(a, k), f(b, k))
    assert torch.equal(a, b)


def test_without_a_fake_rule_the_graph_breaks() -> None:
    @library.custom_op(_name("plain"), mutates_args=())
    def plain(x: Tensor) -> Tensor:
        return x + 1

    backend = Recorder()
    assert torch.equal(dynamo.compile(lambda x: plain(x * 2) * 3, backend=backend)(torch.ones(2)), torch.ones(2) * 9)
    assert len(backend.graphs) == 2
    with pytest.raises(dynamo.report.errors.UnsupportedUnderFullgraph, match="no fake impl registered"):
        dynamo.compile(lambda x: plain(x * 2), backend="eager", fullgraph=True)(torch.ones(2))


def test_ops_by_name() -> None:
    name = _name("named")
    library.define(name, "(Tensor x, SymInt n, *, float? k=None) -> Tensor")
    library.impl(name, "cpu", lambda x, n, k=None: x * n + (k or 0))
    library.register_fake(name, lambda x, n, k=None: torch.empty_like(x))
    found = getattr(torch.ops.tests, name.partition("::")[2])
    assert torch.equal(found(torch.ones(2), 3), torch.ones(2) * 3)
    assert torch.equal(found.default(torch.ones(2), 3, k=1.0), torch.ones(2) * 4)
    compiled = dynamo.compile(lambda x: getattr(torch.ops.tests, name.partition("::")[2])(x, 2), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2) * 2)


def test_a_library_of_ops() -> None:
    lib = library.Library("tests_lib", "DEF")
    name = lib.define(f"twice_{next(_numbers)}(Tensor x) -> Tensor")
    lib.impl(name, lambda x: x * 2, "CPU")
    lib.impl(name, lambda x: torch.empty_like(x), "Meta")
    op = getattr(torch.ops.tests_lib, name)
    assert torch.equal(dynamo.compile(op, backend="aot_eager")(torch.ones(2)), torch.ones(2) * 2)


def test_schemas_are_inferred() -> None:
    def f(x: Tensor, ys: Sequence[Tensor], n: int = 1, *, k: float | None = None, flag: bool = False) -> tuple[Tensor, Tensor]: ...

    assert library.infer_schema(f) == "(Tensor x, Tensor[] ys, int n=1, *, float? k=None, bool flag=False) -> (Tensor, Tensor)"
    assert library.infer_schema(f, mutates_args={"x"}).startswith("(Tensor(a0!) x, Tensor[] ys")

    def g(x) -> Tensor: ...

    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        library.infer_schema(g)


def test_invalid_ops_are_refused(scale) -> None:
    with pytest.raises(ValueError, match="namespace::name"):
        library.custom_op("nameless", mutates_args=())(lambda x: x)
    with pytest.raises(RuntimeError, match="does not exist"):
        library.register_autograd("tests::nonesuch", lambda ctx, g: g)

    @library.custom_op(_name("same"), mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(2))

    @library.custom_op(_name("silent"), mutates_args=())
    def silent(x: Tensor) -> Tensor:
        return x * 2

    y = silent(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="batching rules"):
        scale.register_vmap(lambda *a: None)


def test_opcheck_compares_the_fake_rule(scale) -> None:
    assert library.opcheck(scale, (torch.ones(3),)) == {"test_schema": "SUCCESS", "test_faketensor": "SUCCESS"}
    scale.register_fake(lambda x, by=2.0: x.new_empty(2))
    with pytest.raises(RuntimeError, match="its fake rule"):
        library.opcheck(scale, (torch.ones(3),))


class _Kernel:
    """A stand-in for a Triton kernel, with the interface that its caller uses. It adds on the host."""

    def __init__(self) -> None:
        self.grids: list[object] = []

    def __getitem__(self, grid):
        def launch(x, out, n):
            self.grids.append(grid)
            assert x.numel() == n
            out.numpy()[...] = x.numpy() + 1

        return launch


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_op_around_a_triton_kernel_is_called_whole(backend) -> None:
    kernel = _Kernel()

    @library.triton_op(_name("launch"), mutates_args={})
    def launch(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        library.wrap_triton(kernel)[(1,)](x, out, x.numel())
        return out

    launch.register_autograd(lambda ctx, g: g)
    x = torch.tensor([0.5, -1.0], requires_grad=True)
    y = dynamo.compile(lambda x: launch(x * 2) * 3, backend=backend, fullgraph=True)(x)
    assert y.tolist() == [6.0, -3.0] and kernel.grids == [(1,)]
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [6.0, 6.0]
    assert launch(x.detach()).tolist() == [1.5, 0.0]


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, op):
        ctx.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return op(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x, None


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager", "inductor"])
def test_ops_are_differentiated_through_their_parts_or_by_a_registered_function(backend) -> None:
    namespace = f"tests_keys_{next(_numbers)}"
    lib = library.Library(namespace, "DEF")
    lib.define("scaled_square(Tensor x, float scale) -> Tensor")
    lib.impl("scaled_square", lambda x, scale: x * x * scale, "CompositeImplicitAutograd")
    lib.define("cube(Tensor x) -> Tensor")
    lib.impl("cube", lambda x: torch.from_numpy(x.detach().numpy() ** 3), "CPU")
    lib.impl("cube", lambda x: torch.empty_like(x), "Meta")
    ops = getattr(torch.ops, namespace)
    lib.impl("cube", lambda x: _Cube.apply(x, ops.cube), "Autograd")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    expected = {
        lambda x: ops.scaled_square(x, 2.0) + 1: ([3.0, 9.0], [4.0, 8.0]),
        lambda x: ops.cube(x) + 1: ([2.0, 9.0], [3.0, 12.0]),
        lambda x: ops.cube(x.detach()) + x: ([2.0, 10.0], [1.0, 1.0]),
    }
    for f, (value, slope) in expected.items():
        y = (f if backend is None else dynamo.compile(f, backend=backend, fullgraph=True))(x)
        assert y.tolist() == value and torch.autograd.grad(y.sum(), x)[0].tolist() == slope


def test_an_unsupported_dispatch_key_is_refused() -> None:
    lib = library.Library(f"tests_keys_{next(_numbers)}", "DEF")
    lib.define("nothing(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=r"dispatch key 'Tracer'; supported: .*Autograd"):
        lib.impl("nothing", lambda x: x, "Tracer")
