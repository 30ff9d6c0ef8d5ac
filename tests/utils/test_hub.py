"""hub and model_zoo without a network: local files, checked hashes, errors that say what to do."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest

import eager as torch
from eager import hub
from eager.utils import model_zoo

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    before = hub._dir
    hub.set_dir(tmp_path / "hub")
    yield tmp_path / "hub"
    hub._dir = before


def weights() -> dict[str, torch.Tensor]:
    return {"w": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.int64)}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return set(a) == set(b) and all(torch.equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)


def test_the_hub_folder_follows_the_environment() -> None:
    code = "from eager import hub; print(hub.get_dir())"
    for env, expected in (({"TORCH_HOME": "/t"}, "/t/hub"), ({"XDG_CACHE_HOME": "/x", "TORCH_HOME": ""}, "/x/torch/hub")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT), **env})  # fmt: skip
        assert done.stdout.strip() == expected, done.stderr


def test_an_existing_file_is_loaded_without_a_download(home: Path) -> None:
    (home / "checkpoints").mkdir(parents=True)
    torch.save(weights(), home / "checkpoints" / "net-0000.pth")
    url = "https://nowhere.invalid/models/net-0000.pth?x=1"
    assert same(hub.load_state_dict_from_url(url), weights())
    assert same(model_zoo.load_url(url, check_hash=True), weights())
    torch.save({"k": torch.zeros(1)}, home / "checkpoints" / "other.pth")
    assert set(hub.load_state_dict_from_url(url, file_name="other.pth")) == {"k"}


def test_without_file_or_network_the_error_names_both(home: Path) -> None:
    missing = "http://127.0.0.1:9/net.pth"
    with pytest.raises(URLError, match=r"net\.pth could not be fetched .* no file .*checkpoints/net\.pth; check the network"):
        hub.load_state_dict_from_url(missing)
    assert list((home / "checkpoints").iterdir()) == []


def test_a_download_is_kept_and_its_hash_checked(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    origin = tmp_path / "origin.pth"
    torch.save(weights(), origin)
    digest = hashlib.sha256(origin.read_bytes()).hexdigest()
    good, bad = tmp_path / f"net-{digest[:8]}.pth", tmp_path / "net-00000000.pth"
    for path in (good, bad):
        path.write_bytes(origin.read_bytes())
    assert same(hub.load_state_dict_from_url(good.as_uri(), check_hash=True), weights())
    assert f'Downloading: "{good.as_uri()}"' in capsys.readouterr().err
    good.unlink()
    assert same(hub.load_state_dict_from_url(good.as_uri(), check_hash=True), weights())
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "00000000"'):
        hub.load_state_dict_from_url(bad.as_uri(), check_hash=True)
    assert [p.name for p in (home / "checkpoints").iterdir()] == [good.name]


def test_an_archive_of_one_file_is_unpacked(home: Path, tmp_path: Path) -> None:
    torch.save(weights(), tmp_path / "inner.pth")
    with zipfile.ZipFile(tmp_path / "net.zip", "w") as archive:
        archive.write(tmp_path / "inner.pth", "inner.pth")
    assert same(hub.load_state_dict_from_url((tmp_path / "net.zip").as_uri()), weights())


def test_models_of_a_local_repository(home: Path, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "helper_of_repo.py").write_text("SIZE = 3\n")
    (repo / "hubconf.py").write_text(
        "dependencies = ['numpy']\nfrom helper_of_repo import SIZE\nimport eager as torch\n\n"
        "def net(out=2):\n    'A small net.'\n    return torch.nn.Linear(SIZE, out)\n\ndef _hidden():\n    pass\n"
    )
    assert hub.list(str(repo), source="local") == ["net"]
    assert hub.help(str(repo), "net", source="local") == "A small net."
    assert tuple(hub.load(str(repo), "net", source="local", out=4).weight.shape) == (4, 3)
    home.mkdir()
    repo.rename(home / "owner_name_main")
    assert hub.load("owner/name", "net").in_features == 3
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load("owner/name:main", "other")
    with pytest.raises(NotImplementedError, match="downloading the repository owner/missing"):
        hub.load("owner/missing", "net")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load("owner/name", "net", source="gitlab")
