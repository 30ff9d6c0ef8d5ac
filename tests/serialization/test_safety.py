"""Files that try to run code, damaged files and files of other formats raise an error, and no code in them runs."""
from __future__ import annotations

import collections
import io
import os
import pickle
import random
import struct
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eager
from eager.serialization import load, load_safetensors, save, save_safetensors

CLEAR = (RuntimeError, pickle.UnpicklingError, EOFError, NotImplementedError)


class Calls:
    """An object that pickles as a call of an arbitrary function."""

    def __init__(self, fn: Any, *args: Any) -> None:
        self.call = (fn, args)

    def __reduce__(self) -> Any:
        return self.call


def archive_of(pickled: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", b"3\n")
    return io.BytesIO(file.getvalue())


@pytest.mark.parametrize("fn", [os.system, subprocess.call, eval, exec, getattr, setattr, open, __import__, print])
def test_functions_are_not_called(fn: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for protocol in range(6):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            load(archive_of(pickle.dumps({"x": Calls(fn, "touch /tmp/nothing")}, protocol=protocol)))
    assert capsys.readouterr().out == ""


def _raw(*parts: bytes) -> bytes:
    return b"\x80\x02" + b"".join(parts) + b"."


def _name(module: str, name: str) -> bytes:
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def _text(s: str) -> bytes:
    return b"X" + struct.pack("<I", len(s)) + s.encode()


ATTACKS = {
    "state of a class": _raw(_name("torch", "Tensor"), b"}", _text("__len__"), b"K\x05s", b"b"),
    "attributes of a class": _raw(_name("torch", "Tensor"), b"}", b"}", _text("shape"), b"Ns\x86", b"b"),
    "attributes of a function": _raw(_name("torch._utils", "_rebuild_tensor_v2"), b"}", b"}", _text("__defaults__"), b"Ns\x86", b"b"),
    "instance of a class": _raw(_name("torch", "Tensor"), b"K\x05\x85", b"\x81"),
    "large tensor": _raw(_name("torch", "Tensor"), b"J\xff\xff\xff\x7f\x85R"),
    "large bytearray": _raw(_name("__builtin__", "bytearray"), b"J\xff\xff\xff\x7f\x85R"),
    "call of a string": _raw(_text("os"), b")R"),
    "call of a result": _raw(_name("collections", "OrderedDict"), b")R", b")R"),
    "dotted name": _raw(_name("torch", "Tensor.__init__.__globals__")),
    "module of a name": _raw(_name("torch.serialization.os", "system")),
    "codec": _raw(_name("_codecs", "encode"), _text("x"), _text("rot13"), b"\x86R"),
    "tensor of nothing": _raw(_name("torch._utils", "_rebuild_tensor_v2"), b"N", b"K\x00", b"K\x05\x85", b"K\x01\x85", b"t", b"R"),
    "rebuild by any function": _raw(_name("torch._tensor", "_rebuild_from_type_v2"), b"(", _text("f"), _text("g"), b")}t", b"R"),
    "deep nesting": b"\x80\x02" + b"(" * 100_000 + b".",
    "unhashable key": _raw(b"}", b"]", b"K\x01s"),
    "set of numbers": _raw(_name("__builtin__", "set"), b"J\xff\xff\xff\x7f\x85R"),
    "decimal without end": _raw(b"I" + b"9" * 60_000 + b"\n"),
    "memo": _raw(b"h\x07"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_crafted_pickles_are_refused(name: str) -> None:
    before = dict(vars(eager.Tensor))
    with pytest.raises(pickle.UnpicklingError):
        load(archive_of(ATTACKS[name]))
    assert dict(vars(eager.Tensor)) == before


class Settings:
    def __init__(self, width: int) -> None:
        self.width = width


def test_allowed_names_load_and_only_those() -> None:
    buffer = io.BytesIO()
    save({"s": Settings(3), "o": collections.deque([1])}, buffer)
    names = [f"{__name__}.Settings", "collections.deque"]
    buffer.seek(0)
    assert sorted(eager.serialization.get_unsafe_globals_in_checkpoint(buffer)) == sorted(names)
    with eager.serialization.safe_globals([Settings]):
        assert eager.serialization.get_safe_globals() == [Settings]
        buffer.seek(0)
        with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[collections.deque\]\)"):
            load(buffer)
    assert eager.serialization.get_safe_globals() == []
    buffer.seek(0)
    assert load(buffer, weights_only=False)["s"].width == 3
    small = io.BytesIO()
    save(Settings(4), small)
    eager.serialization.add_safe_globals([(Settings, f"{__name__}.Settings")])
    try:
        small.seek(0)
        assert load(small).width == 4
    finally:
        eager.serialization.clear_safe_globals()
    small.seek(0)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        load(small, pickle_module=pickle, weights_only=True)


# ---- damage ----


def checkpoint(**options: Any) -> bytes:
    model = eager.nn.Sequential(eager.nn.Linear(3, 4), eager.nn.BatchNorm1d(4))
    optimizer = eager.optim.Adam(model.parameters())
    model(eager.ones(2, 3)).sum().backward()
    optimizer.step()
    buffer = io.BytesIO()
    save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "p": model[0].weight, "more": [1, 2.5, "s", (None, True)],
          "c": collections.OrderedDict(a=eager.tensor([1 + 2j])), "u": eager.tensor([1]).to(eager.uint16)}, buffer, **options)  # fmt: skip
    return buffer.getvalue()


def without_checksums(data: bytes) -> bytes:
    """The archive with its checksums set to zero, so that damage reaches the readers of the records."""
    changed, at = bytearray(data), 0
    while (at := changed.find(b"PK\x01\x02", at)) >= 0:
        changed[at + 16 : at + 20] = bytes(4)
        at += 4
    return bytes(changed)


def damaged(data: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    for i in range(count):
        changed = bytearray(data)
        if i % 4:
            for _ in range(rng.choice((1, 1, 2, 5))):
                changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            at = rng.randrange(len(data))
            changed[at : at + 32] = rng.randbytes(min(32, len(data) - at))
        yield bytes(changed)


@pytest.mark.parametrize("kind", ["zip", "mapped", "legacy"])
def test_damage_is_a_clear_error_or_harmless(kind: str, tmp_path: Path) -> None:
    data = checkpoint(_use_new_zipfile_serialization=kind != "legacy")
    rng = random.Random(7)
    cuts = [data[:i] for i in range(0, len(data), 31)]
    broken = [without_checksums(d) if kind != "legacy" else d for d in damaged(data, rng, 400)]
    noise = [start + rng.randbytes(200) for start in (b"", b"PK\x03\x04", b"\x80\x02", b"\x80\x04\x95") for _ in range(10)]
    for i, piece in enumerate([*cuts, *broken, *noise]):
        try:
            if kind == "mapped":
                (tmp_path / "f.pt").write_bytes(piece)
                load(tmp_path / "f.pt", mmap=True)
            else:
                load(io.BytesIO(piece))
        except CLEAR:
            continue
        assert i >= len(cuts), f"a file cut at {len(piece)} of {len(data)} bytes loaded"


def test_flipped_bits_in_data_are_seen() -> None:
    """The checksum of each record detects the damage."""
    data = checkpoint()
    archive = zipfile.ZipFile(io.BytesIO(data))
    for name in archive.namelist():
        info = archive.getinfo(name)
        name_length, extra_length = struct.unpack("<HH", data[info.header_offset + 26 : info.header_offset + 30])
        changed = bytearray(data)
        changed[info.header_offset + 30 + name_length + extra_length] ^= 1
        if "version" in name:
            load(io.BytesIO(bytes(changed)))  # not read
            continue
        with pytest.raises(RuntimeError, match="its checksum differs"):
            load(io.BytesIO(bytes(changed)))


def test_damaged_safetensors_are_value_errors(tmp_path: Path) -> None:
    save_safetensors({"a": eager.ones(3), "b": eager.arange(4)}, tmp_path / "a.safetensors")
    data = (tmp_path / "a.safetensors").read_bytes()
    rng = random.Random(3)
    for i, piece in enumerate([*(data[:n] for n in range(len(data))), *damaged(data, rng, 400)]):
        (tmp_path / "b.safetensors").write_bytes(piece)
        try:
            load_safetensors(tmp_path / "b.safetensors")
        except (ValueError, NotImplementedError):
            continue
        assert i >= len(data)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        save({}, "/nowhere/at/all.pt")
    with pytest.raises(AttributeError, match="'write' attribute"):
        save({}, 3)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no attribute 'read'"):
        load(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        load(io.BytesIO(checkpoint()), mmap=True)
    with pytest.raises(FileNotFoundError):
        load("/nowhere.pt")
    with pytest.raises(EOFError):
        load(io.BytesIO(b""))
    with pytest.raises(pickle.UnpicklingError, match=r"was not written by torch.save"):
        load(io.BytesIO(b"hello world"))


def test_map_location_in_all_its_forms() -> None:
    data = checkpoint()
    seen: list[str] = []

    def place(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage if len(seen) % 2 else None

    for where in (None, "cpu", eager.device("cpu"), {"cuda:0": "cpu"}, {"cpu": "cpu"}, place):
        assert load(io.BytesIO(data), map_location=where)["p"].device.type == "cpu"
    assert seen and set(seen) == {"cpu"}
    moved = load(io.BytesIO(data), map_location="meta")
    assert moved["p"].device.type == "meta" and tuple(moved["p"].shape) == (4, 3)
