"""torch.hub: weights by URL and models of a repository, with local files preferred.

A file in the cache folder is used unchanged, including torch's downloads. Without a network
the error names the missing file.
"""
from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import IO, Any
from urllib.error import URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from eager.base import settings
from eager.base.progress import tqdm
from eager.serialization import load as _load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # torch's name, which other downloaders read
_BLOCK_BYTES = 1 << 20
_CONFIG = "hubconf.py"
_dir: Path | None = None


def _get_torch_home() -> str:
    """`$TORCH_HOME`, or its default. Vision libraries store their data sets in the same folder."""
    return str(settings.current().cache.torch_home)


def get_dir() -> str:
    """The folder of models and weights: the one given to `set_dir`, else `$TORCH_HOME/hub`."""
    return str(_dir or Path(_get_torch_home()) / "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Store models and weights in `d` from now on."""
    global _dir
    _dir = Path(d).expanduser()


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None, weights_only: bool = True) -> Any:  # fmt: skip
    """The object saved at `url`, which is downloaded once to `model_dir` (`get_dir()/checkpoints`).

    file_name: name of the local copy; by default the URL's. check_hash: the file name holds the first digits of the
    SHA-256, as in `resnet18-5c106cde.pth`; verify them after a download. weights_only: load only tensors and plain
    containers, so that the file cannot run code; True by default, unlike torch.
    Raises: URLError if the file is missing and cannot be downloaded; RuntimeError for a wrong hash.
    """
    folder = Path(model_dir) if model_dir is not None else Path(get_dir()) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (file_name or os.path.basename(urlparse(url).path))
    if not target.exists():
        print(f'Downloading: "{url}" to {target}', file=sys.stderr)  # noqa: T201 - torch prints this too
        found = HASH_REGEX.search(target.name) if check_hash else None
        download_url_to_file(url, str(target), found.group(1) if found else None, progress)
    if _is_legacy_zip(target):
        return _load_zipped(target, folder, map_location, weights_only)
    return _load_file(str(target), map_location=map_location, weights_only=weights_only)


def _is_legacy_zip(path: Path) -> bool:
    """Whether the file is a zip archive of one saved file, rather than a saved file in zip format."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return len(names) == 1 and not names[0].endswith("/")


def _load_zipped(path: Path, folder: Path, map_location: Any, weights_only: bool) -> Any:
    with zipfile.ZipFile(path) as archive:
        member = archive.infolist()[0]
        extracted = folder / os.path.basename(member.filename)
        with archive.open(member) as source, extracted.open("wb") as out:
            shutil.copyfileobj(source, out)
    return _load_file(str(extracted), map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download `url` to the file `dst`, which appears only when it is complete.

    hash_prefix: required first digits of its SHA-256. progress: show a progress bar on a terminal.
    Raises: URLError if the download fails; RuntimeError for a wrong hash.
    """
    target = Path(dst).expanduser()
    try:
        response = urlopen(Request(url, headers={"User-Agent": "torch.hub"}))  # noqa: S310 - file: URLs are allowed
    except URLError as error:
        raise URLError(f"{url} could not be fetched ({error.reason}), and there is no file {target}; check the network, or put the "
                       "file there") from error  # fmt: skip
    digest = hashlib.sha256()
    with response, tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, suffix=".partial", delete=False) as out:
        try:
            _copy(response, out, digest.update, progress)
            out.close()
            if hash_prefix is not None and digest.hexdigest()[: len(hash_prefix)] != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            os.replace(out.name, target)
        finally:
            Path(out.name).unlink(missing_ok=True)


def _copy(response: Any, out: IO[bytes], note: Callable[[bytes], None], progress: bool) -> None:
    total = int(response.headers.get("Content-Length") or 0)
    with tqdm(total=total, disable=None if progress else True) as shown:
        while block := response.read(_BLOCK_BYTES):
            out.write(block)
            note(block)
            shown.update(len(block))


# ---- models of a repository ----


def _folder(repo_or_dir: str, source: str, force_reload: bool) -> Path:
    """The local folder of a repository: the given one, or torch's downloaded copy."""
    if source == "local":
        return Path(repo_or_dir)
    if source != "github":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    repo, _, ref = repo_or_dir.partition(":")
    owner, _, name = repo.partition("/")
    refs = [ref] if ref else ["main", "master"]
    candidates = [Path(get_dir()) / "_".join([owner, name, r.replace("/", "_")]) for r in refs]
    found = next((c for c in candidates if c.exists()), None)
    if found is None or force_reload:
        raise NotImplementedError(f"hub: downloading the repository {repo_or_dir}; clone it to {candidates[0]}, or pass its folder "
                                  "with source='local'")  # fmt: skip
    return found


def _configuration(folder: Path) -> ModuleType:
    path = folder / _CONFIG
    if not path.exists():
        raise FileNotFoundError(f"hub: {folder} has no {_CONFIG}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def _entry(module: ModuleType, name: str) -> Callable[..., Any]:
    missing = [d for d in getattr(module, "dependencies", ()) if importlib.util.find_spec(d) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check",  # noqa: A001
         verbose: bool = True, source: str = "github") -> Any:  # fmt: skip
    """The names of the entry points of a repository's hubconf.py. Raises: as `load`."""
    _check_trust("list", trust_repo, source)
    module = _configuration(_folder(github, source, force_reload))
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,  # noqa: A001
         trust_repo: Any = "check", source: str = "github") -> str | None:  # fmt: skip
    """The docstring of an entry point. Raises: as `load`."""
    _check_trust("help", trust_repo, source)
    return _entry(_configuration(_folder(github, source, force_reload)), model).__doc__


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = "check", force_reload: bool = False,
         verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    """Call the entry point `model` of a repository's hubconf.py and return its result. This runs the repository's code.

    repo_or_dir: `owner/name[:ref]`, found where torch.hub stores its copy, or a folder with `source="local"`.
    Raises: NotImplementedError for a repository without a local copy; ValueError for another source; RuntimeError for a
    missing entry point or dependency; FileNotFoundError without a hubconf.py.
    """
    _check_trust("load", trust_repo, source)
    return _entry(_configuration(_folder(repo_or_dir, source, force_reload)), model)(*args, **kwargs)


def _check_trust(name: str, trust_repo: Any, source: str) -> None:
    """Check trust_repo; a local copy counts as trusted. Raises: ValueError for a value that torch does not accept."""
    if trust_repo not in (True, False, "check", None):
        raise ValueError(f"hub.{name}: trust_repo={trust_repo!r}; allowed: True, False, None and 'check'")
    if trust_repo is False and source == "github":
        raise NotImplementedError(f"hub.{name}: trust_repo=False: a question at the terminal is not supported; pass trust_repo=True for a "
                                  "repository that you trust")  # fmt: skip
