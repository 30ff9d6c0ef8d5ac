"""Mistakes raise torch's class of error, which users catch. tests/data/mistakes.json has the messages of common mistakes."""
from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.public import wrapper

F = torch.nn.functional
ones, at = torch.ones, torch.tensor


def _breaking(x: Any) -> Any:
    print("a break")
    return x + 1


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: torch.arange(), TypeError, "invalid combination"),
    (lambda: torch.zeros(), TypeError, 'missing 1 required positional arguments: "size"'),
    (lambda: torch.randn(), TypeError, "randn"),
    (lambda: torch.Size(["a"]), TypeError, r"torch.Size\(\) takes an iterable of 'int' \(item 0 is 'str'\)"),
    (lambda: torch.Size([1, 1.5]), TypeError, r"item 1 is 'float'"),
    *((lambda mode=mode: F.pad(ones(1, 2, 3, 4), (1, 1), mode=mode), NotImplementedError, "Padding size 2 is not supported for 4D")
      for mode in ("reflect", "replicate", "circular")),
    (lambda: F.pad(ones(1, 2, 3), (1, 1), mode="reflect", value=2.0), RuntimeError, "doesn't take in value"),
    (lambda: ones(3).index_add_(0, at([5]), ones(1)), IndexError, "index out of range in self"),
    (lambda: ones(3).index_copy_(0, at([5]), ones(1)), IndexError, "out of bounds"),
    (lambda: ones(3).index_fill_(0, at([5]), 1), IndexError, "out of bounds"),
    (lambda: ones(3).index_reduce_(0, at([5]), ones(1), "prod"), IndexError, "index out of range in self"),
    (lambda: F.cross_entropy(ones(3, 4), at([0, 1])), ValueError, r"Expected input batch_size \(3\) to match target batch_size \(2\)"),
    (lambda: F.cross_entropy(ones(3, 4), at([0, 1, 9])), IndexError, "Target 9 is out of bounds"),
    (lambda: F.pixel_shuffle(ones(2, 3), 2), RuntimeError, "at least 3 dimensions"),
    (lambda: F.pixel_unshuffle(ones(2, 3), 2), RuntimeError, "at least 3 dimensions"),
    (lambda: F.channel_shuffle(ones(2, 3), 2), RuntimeError, "> 2 dims"),
    *((lambda make=make: make(-1), RuntimeError, "negative dimension -1") for make in (torch.rand, torch.randn, torch.empty)),
    (lambda: torch.randint(5, (-1,)), RuntimeError, "negative dimension -1"),
    (lambda: torch.randperm(-1), RuntimeError, "negative dimension -1"),
    (lambda: torch.eye(-1), RuntimeError, "n must be greater or equal to 0"),
    (lambda: ones(3).fill_(ones(2)), RuntimeError, "fill_ only supports 0-dimension value tensor"),
    (lambda: torch.load(io.BytesIO(b"garbage garbage")), pickle.UnpicklingError, "Weights only load failed"),
    (lambda: torch.load(io.BytesIO(b"\0" * 100), weights_only=False), pickle.UnpicklingError, "invalid load key"),
    (lambda: torch.load(io.BytesIO(b"")), EOFError, ""),
    (lambda: torch.compile(_breaking, fullgraph=True, backend="eager")(ones(2)), torch._dynamo.exc.Unsupported, "print"),
    (lambda: torch.compile(_breaking, backend="nope"), torch._dynamo.exc.InvalidBackend, "Invalid backend: 'nope'"),
    (lambda: torch.multiprocessing.set_sharing_strategy("bogus"), AssertionError, "invalid sharing strategy 'bogus'"),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(MISTAKES)))
def test_the_class_is_torchs(i: int) -> None:
    call, kind, text = MISTAKES[i]
    with pytest.raises(kind, match=text) as caught:
        call()
    assert type(caught.value) is kind


def test_compilers_errors_have_torchs_names() -> None:
    exc = torch._dynamo.exc
    for name in "Unsupported InvalidBackend BackendCompilerFailed InternalTorchDynamoError TorchDynamoException".split():
        assert getattr(exc, name).__name__ == name
        assert issubclass(getattr(exc, name), RuntimeError)


def test_sizes_accept_every_kind_of_int() -> None:
    assert torch.Size([True, at(3)]) == (1, 3) and torch.Size() == () and torch.Size([2]).numel() == 2
    assert type(torch.Size([at(3)])[0]) is int


def test_out_of_memory_names_the_device() -> None:
    cupy = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})
    on_gpu = wrapper.out_of_memory("add", cupy("2 GB"))
    assert type(on_gpu) is torch.OutOfMemoryError and "CUDA out of memory" in str(on_gpu)
    assert "out of CPU memory" in str(wrapper.out_of_memory("add", MemoryError()))


_SHARES = """
import eager as torch
import eager.multiprocessing as mp

def child(queue, back):
    x = queue.get()
    x += 1
    back.put("done")

if __name__ == "__main__":
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system" and "file_system" in mp.get_all_sharing_strategies()
    context = mp.get_context("spawn")
    queue, back, x = context.Queue(), context.Queue(), torch.zeros(3)
    process = context.Process(target=child, args=(queue, back))
    process.start()
    queue.put(x)
    back.get()
    process.join()
    print(x.tolist())
"""


def test_tensors_are_shared_by_name_under_file_system(tmp_path: Any) -> None:
    script = tmp_path / "shares.py"
    script.write_text(_SHARES)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "[1.0, 1.0, 1.0]", done.stderr
