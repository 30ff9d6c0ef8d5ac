"""An error in the user's code that this library calls shows the user's frames, and no frame of this library.

Each mistake below has the names of the frames that its traceback holds, from the call on. Backends, fake kernels,
hooks, custom functions, modes, data loaders, export, tracing and interpreters call the user's code in different ways.
"""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eager._dynamo.backends.common import aot_autograd
from eager.fx.experimental.proxy_tensor import make_fx

import eager as torch
from eager.base import settings
from eager.overrides import TorchFunctionMode
from eager.utils._python_dispatch import TorchDispatchMode
from eager.utils.checkpoint import checkpoint
from eager.utils.data import DataLoader, Dataset
from tests.eager.base.test_tracebacks import functions, raised

_ROOT = Path(__file__).resolve().parents[3]


class Mistake(ValueError):
    pass


def fails(*args: Any, **kwargs: Any) -> Any:
    raise Mistake("user's")


def backend(gm: Any, examples: Any) -> Any:
    return fails()


def steps(x: Any) -> Any:
    return x.sin() + 1


def leaf(*shape: int) -> Any:
    return torch.ones(*shape, requires_grad=True)


def whole(fn: Any, backend: Any = "eager") -> Any:
    return torch.compile(fn, backend=backend, fullgraph=True)


class Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return fails()


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return fails()


class Function:
    @classmethod
    def __torch_function__(cls, *args: Any) -> Any:
        return fails()


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, *args: Any) -> Any:
        return fails()


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, *args: Any) -> Any:
        return fails()


class Rows(Dataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return fails()


class Net(torch.nn.Module):
    def __init__(self, fn: Callable[..., Any] = fails) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Any) -> Any:
        return self.fn(x)


class Interpreter(torch.fx.Interpreter):
    def call_function(self, *args: Any) -> Any:
        return fails()


class Transformer(torch.fx.Transformer):
    def call_function(self, *args: Any) -> Any:
        return fails()


@torch.library.custom_op("user_frames::fake", mutates_args=())
def fake_fails(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.library.custom_op("user_frames::kernel", mutates_args=())
def kernel_fails(x: torch.Tensor) -> torch.Tensor:
    return fails()


@torch.library.custom_op("user_frames::formula", mutates_args=())
def formula_fails(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


fake_fails.register_fake(fails)
kernel_fails.register_fake(torch.empty_like)
formula_fails.register_fake(torch.empty_like)
formula_fails.register_autograd(fails)


def hooked_tensor() -> None:
    x = leaf(3)
    x.register_hook(fails)
    x.sum().backward()


def accumulated() -> None:
    x = leaf(3)
    x.register_post_accumulate_grad_hook(fails)
    x.sum().backward()


def hooked_module() -> None:
    net = torch.nn.Linear(2, 2)
    net.register_full_backward_hook(fails)
    net(torch.ones(2, 2)).sum().backward()


def hooked_in_graph(x: Any) -> Any:
    y = x * 2
    y.register_hook(fails)
    return y


def in_mode(mode: Any, call: Callable[[], Any]) -> None:
    with mode:
        call()


def packed() -> None:
    with torch.autograd.graph.saved_tensors_hooks(fails, lambda x: x):
        leaf(3).exp()


def recomputed() -> None:
    calls: list[int] = []

    def once(x: Any) -> Any:
        calls.append(1)
        return fails() if len(calls) > 1 else x.exp()

    checkpoint(once, leaf(3), use_reentrant=False).sum().backward()


def strict_backend() -> None:
    with settings.scope(capture_suppress_errors=False):
        torch.compile(steps, backend=backend)(torch.ones(3))


def forward_graph(gm: Any, examples: Any) -> Any:
    return gm.forward


ONLY_CALL, FAILS, L = (), ("fails",), "<lambda>"
MISTAKES: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "backend": (lambda: whole(steps, backend)(torch.ones(3)), ("backend", *FAILS)),
    "backend, errors not suppressed": (strict_backend, ("backend", *FAILS)),
    "backend of a module": (lambda: whole(torch.nn.Linear(2, 2), backend)(torch.ones(3, 2)), ("backend", *FAILS)),
    "backend without parameters": (lambda: whole(steps, lambda: 0)(torch.ones(3)), ONLY_CALL),
    "backend by aot_autograd": (lambda: whole(steps, aot_autograd(fw_compiler=backend))(torch.ones(3)), ("backend", *FAILS)),
    "fake kernel in export": (lambda: torch.export.export(Net(fake_fails), (torch.ones(3),)), ("forward", *FAILS)),
    "kernel": (lambda: kernel_fails(torch.ones(3)), ("kernel_fails", *FAILS)),
    "kernel in a graph": (lambda: whole(lambda x: kernel_fails(x) + 1)(torch.ones(3)), (L, "kernel_fails", *FAILS)),
    "gradient formula": (lambda: formula_fails(leaf(3)).sum().backward(), FAILS),
    "gradient formula in a graph": (lambda: whole(lambda x: formula_fails(x) + 1, "inductor")(leaf(3)), FAILS),
    "forward": (lambda: Forward.apply(leaf(3)), ("forward", *FAILS)),
    "forward in a graph": (lambda: torch.compile(lambda x: Forward.apply(x))(leaf(3)), (L, "forward", *FAILS)),
    "backward": (lambda: Backward.apply(leaf(3)).sum().backward(), ("backward", *FAILS)),
    "backward of a graph": (lambda: torch.compile(Backward.apply, backend="aot_eager")(leaf(3)).sum().backward(), ("backward", *FAILS)),
    "gradcheck": (lambda: torch.autograd.gradcheck(Backward.apply, leaf(3).double().detach().requires_grad_()), ("backward", *FAILS)),
    "tensor hook": (hooked_tensor, FAILS),
    "accumulation hook": (accumulated, FAILS),
    "module hook": (hooked_module, FAILS),
    "hook in a graph": (lambda: torch.compile(hooked_in_graph, backend="eager")(leaf(3)).sum().backward(), FAILS),
    "saved tensor": (packed, FAILS),
    "checkpoint": (recomputed, ("once", *FAILS)),
    "__torch_function__": (lambda: torch.add(torch.ones(3), Function()), ("__torch_function__", *FAILS)),
    "__torch_function__ of a Python function": (lambda: torch.nn.functional.linear(torch.ones(3, 3), Function()),
                                                ("__torch_function__", *FAILS)),
    "function mode": (lambda: in_mode(FunctionMode(), lambda: torch.ones(3)), ("in_mode", L, "__torch_function__", *FAILS)),
    "dispatch mode": (lambda: in_mode(DispatchMode(), lambda: torch.ones(3)), ("in_mode", L, "__torch_dispatch__", *FAILS)),
    "data set": (lambda: list(DataLoader(Rows())), ("__getitem__", *FAILS)),
    "collate_fn": (lambda: list(DataLoader([1, 2], collate_fn=fails)), FAILS),
    "export": (lambda: torch.export.export(Net(), (torch.ones(3),)), ("forward", *FAILS)),
    "export of a branch": (lambda: torch.export.export(Net(lambda x: x if x.sum() > 0 else -x), (torch.ones(3),)), ("forward", L)),
    "export, wrong input": (lambda: torch.export.export(torch.nn.Linear(2, 2), (torch.ones(3),)), ONLY_CALL),
    "_dynamo.export": (lambda: torch._dynamo.export(lambda x: x if x.sum() > 0 else -x)(torch.ones(3)), ONLY_CALL),
    "explain": (lambda: torch._dynamo.explain(fails)(torch.ones(3)), FAILS),
    "make_fx": (lambda: make_fx(fails)(torch.ones(3)), FAILS),
    "symbolic_trace": (lambda: torch.fx.symbolic_trace(fails), FAILS),
    "symbolic_trace of a branch": (lambda: torch.fx.symbolic_trace(lambda x: 1 if x else 2), (L,)),
    "interpreter": (lambda: Interpreter(torch.fx.symbolic_trace(steps)).run(torch.ones(3)), ("call_function", *FAILS)),
    "interpreter of a wrong graph": (lambda: torch.fx.Interpreter(torch.fx.symbolic_trace(lambda x: x @ x)).run(torch.ones(2, 3)),
                                     ONLY_CALL),
    "transformer": (lambda: Transformer(torch.fx.symbolic_trace(steps)).transform(), ("call_function", *FAILS)),
    "hessian": (lambda: torch.autograd.functional.hessian(fails, torch.ones(3)), FAILS),
    "jacrev": (lambda: torch.func.jacrev(fails)(torch.ones(3)), FAILS),
    "vmap": (lambda: torch.vmap(fails)(torch.ones(3)), FAILS),
    "closure of an optimizer": (lambda: torch.optim.LBFGS([leaf(3)]).step(fails), FAILS),
    "setting": (lambda: setattr(torch._inductor.config, "post_grad_custom_pre_pass", fails), ONLY_CALL),
    "absent name": (lambda: torch._dynamo.compiled_autograd, ONLY_CALL),
    "graph break": (lambda: whole(lambda x: torch._dynamo.graph_break())(torch.ones(3)), ONLY_CALL),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_traceback_holds_the_users_frames_only(name: str) -> None:
    call, inner = MISTAKES[name]
    torch._dynamo.reset()
    names = functions(raised(call))
    assert names == ["raised", call.__name__, *inner]


def test_a_failing_backward_compiler_shows_its_frames() -> None:
    compiled = whole(steps, aot_autograd(fw_compiler=forward_graph, bw_compiler=backend))

    def train() -> None:
        compiled(leaf(3)).sum().backward()

    assert [n for n in functions(raised(train)) if n not in ("raised", "train")] == ["backend", "fails"]



def test_the_text_of_an_error_in_a_worker_holds_the_users_frames_only() -> None:
    text = str(raised(lambda: list(DataLoader(Rows(), num_workers=1, worker_init_fn=lambda i: None))))
    assert "in __getitem__" in text and "in fails" in text and os.path.join(str(_ROOT), "eager") not in text


def test_the_message_of_a_failed_backend_agrees_with_torch() -> None:
    error = raised(lambda: whole(steps, backend)(torch.ones(3)))
    assert type(error) is torch._dynamo.exc.BackendCompilerFailed and isinstance(error.inner_exception, Mistake)
    assert str(error).startswith("backend='backend' raised:\nMistake: user's\n\nwhile compiling steps (")
    assert "dynamo" not in str(error).replace("tests/dynamo", "") and error.backend_name == "backend"


def test_the_warning_about_a_failed_backend_names_no_line_of_the_library(caplog: pytest.LogCaptureFixture) -> None:
    for wrong in (backend, lambda: 0):
        with settings.scope(capture_suppress_errors=True):
            torch.compile(steps, backend=wrong)(torch.ones(3))
    first, second = caplog.messages
    assert first.endswith(f"Mistake: user's (at report/{Path(__file__).name}:{fails.__code__.co_firstlineno + 1})")
    assert "(at " not in second


def test_a_graph_break_in_a_function_of_the_library_names_the_users_line() -> None:
    def f(x: Any) -> Any:
        return torch.cond(x.sum() > 0, fails, fails, (x,))

    place = f"{__file__}:{f.__code__.co_firstlineno + 1}\n  return torch.cond("
    assert f"Graph break in user code at {place}" in str(raised(lambda: whole(f)(torch.ones(3))))


def test_the_setting_shows_all_frames_of_a_failed_backend() -> None:
    code = ("import eager as torch\ndef backend(gm, args):\n    raise ValueError('user')\n"
            "torch.compile(lambda x: x + 1, backend=backend, fullgraph=True)(torch.ones(3))\n")  # fmt: skip
    shown = {}
    for value in ("0", "1"):
        env = {**os.environ, "FRAMEJIT_FULL_TRACEBACK": value}
        shown[value] = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=_ROOT, check=False).stderr
    assert "region.py" in shown["1"]
    # Python 3.13 also shows the source line of a -c string.
    frames = [line for line in shown["0"].splitlines() if not line.startswith("    ")]
    assert frames[:4] == [
        "Traceback (most recent call last):",
        '  File "<string>", line 4, in <module>',
        '  File "<string>", line 3, in backend',
        "dynamo.exc.BackendCompilerFailed: backend='backend' raised:",
    ]
