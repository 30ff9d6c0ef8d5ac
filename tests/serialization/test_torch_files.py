"""Files that torch wrote (tests/data/make_torch_files.py), and files of eager in the format that torch reads."""
from __future__ import annotations

import base64
import copy
import io
import json
import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager.serialization import write

from . import objects

STORED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "torch_files.json").read_text())


def stored(name: str) -> io.BytesIO:
    return io.BytesIO(base64.b64decode(STORED["files"][name]))


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", ["values", "legacy"])
def test_reads_what_torch_wrote(name: str) -> None:
    got, want = plain(objects.describe(eager, eager.load(stored(name)))), STORED["read"][name]
    for (g_name, g), (w_name, w) in zip(got[1], want[1], strict=True):
        assert g_name == w_name and g == w, w_name


@pytest.mark.parametrize("name", ["values", "legacy"])
def test_shared_storage_stays_shared(name: str) -> None:
    got = eager.load(stored(name))
    got["float32"][5] = 99.0
    assert float(got["view"][0, 1]) == 99.0


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, *({"pickle_protocol": p} for p in (1, 3, 4, 5))])
def test_load_returns_the_saved_objects(options: dict[str, Any]) -> None:
    original = objects.values(eager)
    buffer = io.BytesIO()
    eager.save(original, buffer, **options)
    buffer.seek(0)
    assert objects.describe(eager, eager.load(buffer)) == objects.describe(eager, original)


def test_modules_that_torch_pickled_whole_run() -> None:
    models = eager.load(stored("models"), weights_only=False)
    shapes = {name: shape for name, (_, shape) in objects.models(eager).items()}
    for name, model in models.items():
        got = objects.outputs(eager, model, shapes[name])
        np.testing.assert_allclose(got, STORED["read"]["models"][name], rtol=1e-4, atol=1e-5, err_msg=name)
        assert repr(model) == repr(objects.models(eager)[name][0])


def test_training_continues_from_optimizers_that_torch_saved() -> None:
    """The file holds pickled optimizers, or state dicts that our optimizers load."""
    for kind, parts in eager.load(stored("training"), weights_only=False).items():
        np.testing.assert_allclose(objects.after(eager, parts), STORED["read"]["training"][kind], rtol=1e-5, atol=1e-6, err_msg=kind)
    for kind, states in eager.load(stored("states")).items():
        parts = objects.training(eager, kind)
        for part, state in zip(parts, states, strict=True):
            part.load_state_dict(state)
        np.testing.assert_allclose(objects.after(eager, parts), STORED["read"]["training"][kind], rtol=1e-5, atol=1e-6, err_msg=kind)


def test_reads_files_without_checksums() -> None:
    assert eager.load(stored("without_checksums")).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def _names_in(data: bytes) -> set[str]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    pickled = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
    return {arg for op, arg, _ in pickletools.genops(pickled) if op.name == "GLOBAL"}


def test_saved_files_contain_only_names_that_torch_writes() -> None:
    ours, theirs = set(), set()
    for name, made in (("values", objects.values(eager)), ("models", {k: m for k, (m, _) in objects.models(eager).items()}),
                       ("training", {kind: objects.training(eager, kind) for kind in objects.KINDS})):  # fmt: skip
        buffer = io.BytesIO()
        eager.save(made, buffer)
        ours |= _names_in(buffer.getvalue())
        theirs |= _names_in(stored(name).getvalue())
    # torch names the builtin gelu after its C module
    assert ours - theirs <= {"torch.nn.functional gelu"} and not any(n.startswith("eager") for n in ours)
    assert {n for n in theirs - ours if n.startswith("torch")} <= {"torch._C._nn gelu"}


def test_other_byte_orders_are_read() -> None:
    """The file of a big-endian machine is the same archive with reversed bytes of numbers and a record of the byte order."""
    made = {"f": eager.arange(5.0), "i": eager.arange(3), "c": eager.tensor([1 + 2j]), "b": eager.tensor([True])}
    buffer, reversed_file = io.BytesIO(), io.BytesIO()
    eager.save(made, buffer)
    widths = {"0": 4, "1": 8, "2": 4, "3": 1}
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(reversed_file, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if "/data/" in name:
                width = widths[name.rsplit("/", 1)[1]]
                data = np.frombuffer(data, np.uint8).reshape(-1, width)[:, ::-1].tobytes()
            new.writestr(name, b"big" if name.endswith("byteorder") else data)
    got = eager.load(io.BytesIO(reversed_file.getvalue()))
    assert all(eager.equal(got[k], made[k]) for k in made)


def test_compressed_archives_are_read() -> None:
    buffer, packed = io.BytesIO(), io.BytesIO()
    eager.save({"w": eager.arange(1000.0)}, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert eager.equal(eager.load(io.BytesIO(packed.getvalue()))["w"], eager.arange(1000.0))


def test_large_records_are_aligned_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records beyond 2 GiB have longer headers. In this test every record has such a header."""
    monkeypatch.setattr(write, "_ZIP64_FROM", 100)
    made = {"a": eager.arange(500.0), "b": eager.arange(3), "c": eager.arange(1000)}
    eager.save(made, tmp_path / "large.pt")
    assert zipfile.ZipFile(tmp_path / "large.pt").testzip() is None
    for mapped in (False, True):
        got = eager.load(tmp_path / "large.pt", mmap=mapped)
        assert all(eager.equal(got[k], made[k]) for k in made)
        assert not mapped or all(t.data_ptr() % 64 == 0 for t in got.values())


def test_generators_go_on_from_where_they_were(tmp_path: Path) -> None:
    generator = eager.Generator().manual_seed(5)
    eager.rand(3, generator=generator)
    copies = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    state = io.BytesIO()
    eager.save({"state": generator.get_state(), "default": eager.get_rng_state()}, state)
    state.seek(0)
    copies.append(eager.Generator())
    copies[-1].set_state(eager.load(state)["state"])
    eager.save(generator, tmp_path / "g.pt")
    copies.append(eager.load(tmp_path / "g.pt", weights_only=False))
    want = eager.rand(4, generator=generator)
    assert all(eager.equal(eager.rand(4, generator=g), want) for g in copies)


def test_mapping_may_share_the_file(tmp_path: Path) -> None:
    eager.save({"w": eager.arange(4.0)}, tmp_path / "m.pt")
    with eager.serialization.set_default_mmap_options(eager.serialization.MAP_SHARED):
        assert eager.serialization.get_default_mmap_options() == eager.serialization.MAP_SHARED
        eager.load(tmp_path / "m.pt", mmap=True)["w"][0] = 7.0
    assert eager.serialization.get_default_mmap_options() == eager.serialization.MAP_PRIVATE
    assert eager.load(tmp_path / "m.pt", mmap=True)["w"].tolist() == [7.0, 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        eager.serialization.set_default_mmap_options(12)


def test_storages_and_subclasses_survive(tmp_path: Path) -> None:
    class_made = eager.arange(3.0).as_subclass(Marked)
    class_made.note = "n"
    base = eager.arange(6.0)
    eager.save({"s": base.untyped_storage(), "t": base, "m": class_made, "tied": [base, base[2:]]}, tmp_path / "s.pt")
    with pytest.raises(pickle.UnpicklingError, match="Marked"):
        eager.load(tmp_path / "s.pt")
    with eager.serialization.safe_globals([Marked]):
        got = eager.load(tmp_path / "s.pt")
    assert type(got["m"]) is Marked and got["m"].note == "n" and got["m"].tolist() == [0.0, 1.0, 2.0]
    assert got["s"].nbytes() == 24 and got["t"] is got["tied"][0]
    got["tied"][1][0] = 50.0
    assert float(got["t"][2]) == 50.0


class Marked(eager.Tensor):
    """A tensor of a user's class."""
