"""SummaryWriter: event files that the installed package reads back; a clear error without one."""
from __future__ import annotations

import importlib
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_package_the_import_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['tensorboard'] = sys.modules['tensorboardX'] = None\n"
        "try:\n    from eager.utils.tensorboard import SummaryWriter\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert "pip install tensorboard" in done.stdout and "neither is installed" in done.stdout, done.stderr


def writer_class() -> Any:
    pytest.importorskip("tensorboard.backend.event_processing", reason="the package tensorboard is not installed")
    return importlib.import_module("eager.utils.tensorboard").SummaryWriter


def read(folder: Path) -> list[Any]:
    loader = importlib.import_module("tensorboard.backend.event_processing.event_file_loader")
    (path,) = [p for p in folder.iterdir() if "tfevents" in p.name]
    return [(event.step, value) for event in loader.LegacyEventFileLoader(str(path)).Load() for value in event.summary.value]


def test_numbers_are_read_back(tmp_path: Path) -> None:
    with writer_class()(tmp_path, purge_step=1) as w:
        w.add_scalar("loss", torch.tensor(1.5, requires_grad=True), 3, walltime=7.0)
        w.add_scalar("acc", np.float64(0.25), torch.tensor(4))
        w.add_scalar("exact", 1 / 3, 5, double_precision=True)
        w.add_scalars("both/of", {"a": 1, "b": 2.5}, 6)
        w.add_text("note", "*hello*", 7)
        with pytest.raises(ValueError, match="allowed: a single number"):
            w.add_scalar("loss", torch.ones(2))
        with pytest.raises(NotImplementedError, match="add_graph"):
            w.add_graph(None)
    found = {value.tag: (step, value) for step, value in read(tmp_path)}
    assert found["loss"][0] == 3 and found["loss"][1].simple_value == 1.5
    assert found["acc"][0] == 4 and found["acc"][1].simple_value == 0.25
    assert found["exact"][1].tensor.double_val[0] == 1 / 3
    assert found["note/text_summary"][1].tensor.string_val[0] == b"*hello*"
    for name, expected in (("a", 1.0), ("b", 2.5)):
        ((step, value),) = read(tmp_path / f"both_of_{name}")
        assert (step, value.tag, value.simple_value) == (6, "both/of", expected)


def test_histograms_count_every_value(tmp_path: Path) -> None:
    values = torch.tensor([-3.0, -0.5, 0.0, 0.5, 0.5, 2.0])
    with writer_class()(tmp_path) as w:
        w.add_histogram("h", values, 1)
        w.add_histogram("edges", values, 1, bins=[-4, 0, 1, 3])
        w.add_histogram("few", values, 1, bins=60, max_bins=7)
        with pytest.raises(ValueError, match="no values"):
            w.add_histogram("none", [])
    found = {value.tag: value.histo for _, value in read(tmp_path)}
    for histo in found.values():
        assert (histo.min, histo.max, histo.num, histo.sum) == (-3, 2, 6, -0.5) and sum(histo.bucket) == 6
        assert len(histo.bucket) == len(histo.bucket_limit) and histo.sum_squares == pytest.approx(13.75)
    assert list(found["edges"].bucket) == [0, 2, 3, 1] and list(found["edges"].bucket_limit) == [-4, 0, 1, 3]
    assert len(found["few"].bucket) <= 8


def decoded(data: bytes) -> np.ndarray[Any, Any]:
    """The levels of an unfiltered 8-bit RGB PNG."""
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    at = data.index(b"IDAT")
    rows = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + int.from_bytes(data[at - 4 : at], "big")]), np.uint8)
    return rows.reshape(height, -1)[:, 1:].reshape(height, width, -1)


def test_pictures_keep_their_levels(tmp_path: Path) -> None:
    rgb = torch.arange(24, dtype=torch.uint8).reshape(3, 2, 4)
    with writer_class()(tmp_path) as w:
        w.add_image("chw", rgb)
        w.add_image("hwc", rgb.permute(1, 2, 0), dataformats="HWC")
        w.add_image("gray", torch.tensor([[0.0, 0.5], [1.0, 2.0]]), dataformats="HW")
        w.add_images("grid", torch.stack([rgb, rgb, rgb]))
        with pytest.raises(ValueError, match="input format are different"):
            w.add_image("wrong", rgb, dataformats="HW")
    found = {value.tag: decoded(value.image.encoded_image_string) for _, value in read(tmp_path)}
    assert (found["chw"] == rgb.permute(1, 2, 0).numpy()).all() and (found["hwc"] == found["chw"]).all()
    assert found["gray"][..., 0].tolist() == [[0, 127], [255, 255]]
    assert found["grid"].shape == (4, 8, 3) and (found["grid"][:2, 4:] == found["chw"]).all() and not found["grid"][2:, 4:].any()


def test_hyperparameters_sound_and_embeddings(tmp_path: Path) -> None:
    w = writer_class()(tmp_path)
    w.add_hparams({"lr": 0.1, "net": "a", "fast": True, "none": None}, {"acc": 0.5}, {"net": ["a", "b"]}, run_name="r")
    w.add_audio("s", torch.zeros(1, 8), sample_rate=100)
    w.add_embedding(torch.eye(2), metadata=["x", "y"], global_step=3)
    w.close()
    tags = [value.tag for _, value in read(tmp_path / "r")]
    assert tags == ["_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc"]
    ((_, sound),) = read(tmp_path)
    assert sound.audio.length_frames == 8 and sound.audio.encoded_audio_string[:4] == b"RIFF"
    assert (tmp_path / "00003/default/tensors.tsv").read_text() == "1.0\t0.0\n0.0\t1.0\n"
    assert 'metadata_path: "00003/default/metadata.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()
