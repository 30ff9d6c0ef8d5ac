"""Tracebacks of eager and compiled calls contain only the user's frames, also through hooks, generators and nested exceptions."""
from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from eager.base import settings, tracebacks
from eager.utils.data import DataLoader, Dataset

_ROOT = Path(__file__).resolve().parents[3]
_OURS = tuple(str(_ROOT / package) + os.sep for package in ("eager", "fxir", "dynamo", "inductor"))


def raised(call: Callable[[], Any]) -> BaseException:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the caller checks the class
        return error
    raise AssertionError("no error")


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def functions(error: BaseException) -> list[str]:
    """Names of the frames of an error and of its causes and contexts. Frames of our packages include their file."""
    return [f"{frame.filename}:{frame.name}" if frame.filename.startswith(_OURS) else frame.name
            for e in chain(error) for frame in traceback.extract_tb(e.__traceback__)]  # fmt: skip


class Rows(Dataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        raise ValueError("bad row")


def _modified() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise KeyError("user's backward")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def _hooked() -> None:
    def hook(module: Any, args: Any) -> None:
        raise ValueError("user's hook")

    net = torch.nn.Sequential(torch.nn.Linear(3, 4))
    net[0].register_forward_pre_hook(hook)
    net(torch.ones(2, 3))


MISTAKES: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "operator": (lambda: torch.ones(2, 3) @ torch.ones(4, 5), ()),
    "op": (lambda: torch.add(torch.ones(3), torch.ones(4)), ()),
    "method": (lambda: torch.ones(3).view(5), ()),
    "function": (lambda: torch.nn.functional.conv2d(torch.ones(1, 3, 4, 4), torch.ones(2, 4, 3, 3)), ()),
    "module": (lambda: torch.nn.Sequential(torch.nn.Linear(3, 4))(torch.ones(2, 5)), ()),
    "forward": (lambda: Net()(torch.ones(2, 5)), ("forward",)),
    "constructor": (lambda: torch.nn.Conv2d(3, 4, 3, groups=2), ()),
    "attribute": (lambda: torch.nn.Linear(2, 2).wieght, ()),
    "tensor attribute": (lambda: torch.ones(2).shpae, ()),
    "property": (lambda: setattr(torch.ones(2), "grad", 3), ()),
    "state dict": (lambda: torch.nn.Linear(2, 2).load_state_dict({}), ()),
    "optimizer": (lambda: torch.optim.SGD([], lr=0.1), ()),
    "backward": (lambda: torch.ones(2, requires_grad=True).backward(), ()),
    "engine": (_modified, ("_modified",)),
    "loader": (lambda: next(iter(DataLoader(Rows()))), ("__getitem__",)),
    "hook": (_hooked, ("_hooked", "hook")),
    "custom function": (lambda: Doubled.apply(torch.ones(2, requires_grad=True)).sum().backward(), ("backward",)),
    "index": (lambda: torch.ones(3)[5], ()),
    "factory": (lambda: torch.zeros(-1), ()),
    "load": (lambda: torch.load(os.devnull), ()),
    "distribution": (lambda: torch.distributions.Normal(torch.ones(2), torch.ones(3)), ()),
    "vmap": (lambda: torch.func.vmap(lambda a: a.view(7))(torch.ones(2, 3)), ("<lambda>",)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_eager_shows_the_users_frames_only(name: str) -> None:
    call, inner = MISTAKES[name]
    names = functions(raised(call))
    assert names == ["raised", *(["<lambda>"] if call.__name__ == "<lambda>" else []), *inner]


COMPILED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "operator": (lambda x: x @ torch.ones(4, 5), ("<lambda>",)),
    "module": (lambda x: torch.nn.Sequential(torch.nn.Linear(7, 4))(x), ("<lambda>",)),
    "after a break": (lambda x: (print(end=""), x.view(5))[1], ("<lambda>",)),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_shows_the_users_frames_only(name: str, backend: str) -> None:
    fn, names = COMPILED[name]
    compiled = torch.compile(fn, backend=backend)
    for _ in range(2):
        assert functions(raised(lambda: compiled(torch.ones(2, 3)))) == ["raised", "<lambda>", *names]


def test_errors_of_the_compiler_interface_show_the_users_frames_only() -> None:
    def broken(x: Any) -> Any:
        print("a break")
        return x + 1

    assert functions(raised(lambda: torch.compile(broken, backend="nope"))) == ["raised", "<lambda>"]
    whole = torch.compile(broken, backend="eager", fullgraph=True)
    assert not [n for n in functions(raised(lambda: whole(torch.ones(2)))) if n.startswith(_OURS)]


def test_a_compiled_module_shows_the_users_forward() -> None:
    compiled = torch.compile(Net(), backend="eager")
    assert functions(raised(lambda: compiled(torch.ones(2, 5)))) == ["raised", "<lambda>", "forward"]


def test_full_traceback_shows_all() -> None:
    with settings.scope(debug_full_traceback=True):
        names = functions(raised(lambda: torch.ones(2, 3) @ torch.ones(4, 5)))
    assert any("metadata.py" in n or "table.py" in n for n in names)


def test_the_variable_is_read_at_start() -> None:
    code = "import eager as torch\ntorch.ones(3) + torch.ones(4)\n"
    lines = {}
    for value in ("0", "1"):
        env = {**os.environ, "FRAMEJIT_FULL_TRACEBACK": value}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=_ROOT, check=False)
        lines[value] = done.stderr.splitlines()
    assert len(lines["0"]) == 3 and "table.py" in "".join(lines["1"])


def test_the_users_exceptions_keep_their_context() -> None:
    def call() -> None:
        try:
            raise KeyError("the user's")
        except KeyError:
            torch.ones(3) + torch.ones(4)

    error = raised(call)
    assert isinstance(error.__context__, KeyError) and functions(error) == ["raised", "call", "call"]


def test_exceptions_that_the_library_caught_are_not_shown() -> None:
    for call, _ in MISTAKES.values():
        for e in chain(raised(call)):
            assert e.__traceback__ is not None, f"{e!r} has no frame of the user's"


def test_standard_library_frames_that_the_user_called_stay() -> None:
    @contextlib.contextmanager
    def block() -> Iterator[None]:
        torch.ones(3) + torch.ones(4)
        yield

    def call() -> None:
        with block():
            pass

    assert functions(raised(call)) == ["raised", "call", "__enter__", "block"]


def test_logging_and_format_exc_show_the_users_frames_only(caplog: pytest.LogCaptureFixture) -> None:
    try:
        torch.ones(3).view(5)
    except RuntimeError:
        logging.getLogger("user").exception("failed")
        assert not any(own in traceback.format_exc() for own in _OURS)
    assert not any(own in caplog.text for own in _OURS)


def _plain(a: int, b: int = 2) -> int:
    return a // b


def _nested(fail: bool) -> list[str]:
    seen = []
    try:
        with contextlib.suppress(ZeroDivisionError):
            _plain(1, 0)
        for i in range(3):
            try:
                if fail and i == 1:
                    raise ValueError("inside")
            finally:
                seen.append(f"finally {i}")
    except ValueError as error:
        seen.append(str(error))
        raise RuntimeError("outside") from error
    return seen


def _generator(n: int) -> Iterator[int]:
    try:
        yield from range(n)
    finally:
        _plain(1, 1)
    raise ValueError("end")


def _closure(n: int) -> Callable[[int], int]:
    return lambda a: a // n


def with_handler(fn: Any) -> Any:
    made = functools.wraps(fn)(type(fn)(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__))
    made.__code__ = tracebacks.with_handler(fn.__code__)
    assert tracebacks.has_handler(made.__code__) and tracebacks.handler_offset(made.__code__) == len(fn.__code__.co_code)
    return made


@pytest.mark.parametrize(("fn", "args"), [(_plain, (5,)), (_plain, (5, 0)), (_plain, ()), (_nested, (False,)), (_nested, (True,)),
                                          (_closure(0), (1,)), (_closure(2), (4,))])  # fmt: skip
def test_the_handler_changes_nothing_else(fn: Any, args: tuple[Any, ...]) -> None:
    def outcome(call: Any) -> Any:
        try:
            return call(*args)
        except Exception as error:  # noqa: BLE001 - compared
            return type(error), str(error), type(error.__cause__), [f.lineno for f in traceback.extract_tb(error.__traceback__)][1:]

    assert outcome(with_handler(fn)) == outcome(fn)


def test_generators_with_the_handler_yield_throw_and_close() -> None:
    made = with_handler(_generator)
    assert list(itertools.islice(made(2), 2)) == [0, 1]
    with pytest.raises(ValueError, match="end"):
        list(made(2))
    running = made(2)
    next(running)
    with pytest.raises(KeyError):
        running.throw(KeyError("thrown"))
    running = made(2)
    next(running)
    running.close()
