"""Files: round trips, torch's own files, shared memory, safety, damage."""
from __future__ import annotations

import base64
import collections
import importlib
import io
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import eager
from eager import nn, serialization
from eager.as_torch.finder import real_name
from eager.serialization import load, load_safetensors, save, save_safetensors

TORCH_FILE = Path(__file__).parents[1] / "data" / "torch_saved.pt.b64"
TORCH_PICKLE = TORCH_FILE.parent / "torch_pickled.b64"


def test_round_trip_keeps_structure_dtypes_and_sharing(tmp_path: Path) -> None:
    base = eager.arange(12.0)
    state = {
        "view": base.view(3, 4).t(), "same": base, "scalar": eager.tensor(2.5, dtype=eager.bfloat16), "empty": eager.zeros(0, 3),
        "ints": [eager.tensor([1, 2], dtype=eager.int32), (eager.tensor([True]),)], "n": 3, "name": "x", "none": None,
        "dtype": eager.float16, "device": eager.device("cpu"), "size": eager.zeros(2, 3).shape, "raw": b"\x00\xff",
        "param": nn.Parameter(eager.ones(2)),
    }  # fmt: skip
    save(state, tmp_path / "a.pt")
    got = load(tmp_path / "a.pt")
    assert eager.equal(got["view"], state["view"]) and got["view"].stride() == (1, 4)
    got["same"][0] = 100.0
    assert float(got["view"][0, 0]) == 100.0
    assert got["scalar"].dtype is eager.bfloat16 and float(got["scalar"]) == 2.5 and got["empty"].shape == (0, 3)
    assert got["ints"][1][0].dtype is eager.bool and got["dtype"] is eager.float16 and got["raw"] == b"\x00\xff"
    assert isinstance(got["param"], nn.Parameter) and got["size"] == (2, 3) and got["device"] is eager.device("cpu")
    assert os.listdir(tmp_path) == ["a.pt"]


def test_file_objects_and_mapping(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    save([eager.arange(5)], buffer)
    buffer.seek(0)
    assert load(buffer)[0].tolist() == [0, 1, 2, 3, 4]
    save({"w": eager.arange(1000.0)}, tmp_path / "m.pt")
    mapped = load(tmp_path / "m.pt", mmap=True)["w"]
    assert mapped.data_ptr() % 64 == 0 and float(mapped.sum()) == 499500.0
    mapped[0] = 7.0  # private: the file keeps its value
    assert float(load(tmp_path / "m.pt")["w"][0]) == 0.0


def test_module_and_optimizer_states_round_trip(tmp_path: Path) -> None:
    m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    o = eager.optim.AdamW(m.parameters())
    m(eager.randn(5, 3)).sum().backward()
    o.step()
    save({"model": m.state_dict(), "optimizer": o.state_dict()}, tmp_path / "c.pt")
    saved = load(tmp_path / "c.pt", map_location="cpu")
    twin = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    twin.load_state_dict(saved["model"])
    other = eager.optim.AdamW(twin.parameters())
    other.load_state_dict(saved["optimizer"])
    x = eager.randn(6, 3)
    for model, optimizer in ((m, o), (twin, other)):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()
    for a, b in zip(m.parameters(), twin.parameters(), strict=True):
        assert eager.equal(a, b)


def _check_what_torch_wrote(got: Any) -> None:
    assert list(got["model"]) == ["0.weight", "0.bias", "1.weight"]
    assert isinstance(got["model"], collections.OrderedDict)
    assert got["model"]["0.weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert got["model"]["1.weight"].dtype is eager.bfloat16 and got["model"]["1.weight"].tolist() == [1.5, -2.0]
    assert got["view"].tolist() == [[0.0, 2.0], [1.0, 3.0]] and got["view"].stride() == (1, 2)
    assert isinstance(got["param"], nn.Parameter) and got["step"] == 7 and got["dtype"] is eager.float64
    assert got["optimizer"]["state"][0]["exp_avg"].shape == (2, 3)


def test_reads_a_file_that_torch_wrote() -> None:
    _check_what_torch_wrote(load(io.BytesIO(base64.b64decode(TORCH_FILE.read_text()))))


class _AsTorch(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return getattr(importlib.import_module(real_name(module)) if module.startswith("torch") else importlib.import_module(module), name)


def test_reads_a_pickle_of_torchs_tensors() -> None:
    got = _AsTorch(io.BytesIO(base64.b64decode(TORCH_PICKLE.read_text()))).load()
    _check_what_torch_wrote(got)
    assert got["meta"].device.type == "meta" and got["meta"].stride() == (1, 3)


def test_pickles_tensors_of_the_meta_device() -> None:
    layer = nn.Linear(2, 3, device="meta")
    layer.weight.mark = 1
    got = pickle.loads(pickle.dumps({"layer": layer, "t": eager.empty(3, 4, device="meta", dtype=eager.float64).t()}))
    assert got["t"].device.type == "meta" and got["t"].stride() == (1, 4) and got["t"].dtype is eager.float64
    weight = got["layer"].weight
    assert isinstance(weight, nn.Parameter) and weight.requires_grad and weight.mark == 1 and weight.device.type == "meta"


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("echo never",)


def test_loading_runs_no_code_by_default() -> None:
    buffer = io.BytesIO()
    save({"x": Evil()}, buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed(.|\n)*posix.system"):
        load(buffer)


def test_allowed_classes_load(tmp_path: Path) -> None:
    save({"c": complex(1, 2), "d": collections.Counter("aab")}, tmp_path / "x.pt")
    assert load(tmp_path / "x.pt") == {"c": 1 + 2j, "d": collections.Counter("aab")}
    save(nn.Linear(2, 2), tmp_path / "m.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL torch.nn.modules.linear.Linear"):
        load(tmp_path / "m.pt")
    assert isinstance(load(tmp_path / "m.pt", weights_only=False), nn.Linear)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9, 0.999])
def test_truncated_file_is_a_clear_error(tmp_path: Path, keep: float) -> None:
    save({"w": eager.arange(1000.0)}, tmp_path / "a.pt")
    data = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "b.pt").write_bytes(data[: int(len(data) * keep)])
    with pytest.raises((RuntimeError, EOFError), match=r"b.pt"):
        load(tmp_path / "b.pt")


def test_missing_folder() -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory /nowhere/at does not exist"):
        save(1, "/nowhere/at/all.pt")


# ---- safetensors ----


def test_safetensors_round_trip_and_alignment(tmp_path: Path) -> None:
    tensors = {"a": eager.arange(6.0).view(2, 3).t(), "b": eager.tensor([1, 2, 3], dtype=eager.int8),
               "c": eager.ones(3, dtype=eager.bfloat16), "d": eager.tensor(True), "e": eager.zeros(0, 2)}  # fmt: skip
    save_safetensors(tensors, tmp_path / "x.safetensors", {"format": "pt"})
    for mapped in (False, True):
        got = load_safetensors(tmp_path / "x.safetensors", mapped=mapped)
        assert set(got) == set(tensors)
        assert all(eager.equal(got[k], tensors[k]) and got[k].dtype is tensors[k].dtype for k in tensors)
    with pytest.raises(RuntimeError, match=r"'w' and 'z' share memory"):
        save_safetensors({"w": tensors["a"], "z": tensors["a"]}, tmp_path / "y.safetensors")


def test_safetensors_agrees_with_the_safetensors_package(tmp_path: Path) -> None:
    theirs = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    tensors = {"a": eager.randn(3, 4), "b": eager.arange(5)}
    save_safetensors(tensors, tmp_path / "x.safetensors")
    arrays = theirs.load_file(tmp_path / "x.safetensors")
    assert all((arrays[k] == tensors[k].numpy()).all() for k in tensors)
    theirs.save_file(arrays, tmp_path / "y.safetensors")
    got = load_safetensors(tmp_path / "y.safetensors")
    assert all(eager.equal(got[k], tensors[k]) for k in tensors)


@pytest.mark.parametrize("keep", [4, 20, 100, 300])
def test_truncated_safetensors_is_a_clear_error(tmp_path: Path, keep: int) -> None:
    save_safetensors({"w": eager.arange(100.0)}, tmp_path / "a.safetensors")
    data = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "b.safetensors").write_bytes(data[:keep])
    with pytest.raises(ValueError, match=r"load_safetensors: .*b.safetensors"):
        load_safetensors(tmp_path / "b.safetensors")


def test_namespace() -> None:
    assert eager.save is save and eager.load is load and eager.serialization is serialization
