"""torch.hub: weights by URL and models of a repository, from local files first.

A file that is in the cache folder is used as it is, so what torch has downloaded is found too. Without a network
the error says which file was looked for.
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

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # under torch's name: other downloaders read it
_BLOCK_BYTES = 1 << 20
_CONFIG = "hubconf.py"
_dir: Path | None = None


def _get_torch_home() -> str:
    """`$TORCH_HOME`, or its default. Vision libraries keep their data sets beside what hub keeps."""
    return str(settings.current().cache.torch_home)


def get_dir() -> str:
    """The folder for models and weights: as set by `set_dir`, else `$TORCH_HOME/hub`."""
    return str(_dir or Path(_get_torch_home()) / "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep models and weights in `d` from now on."""
    global _dir
    _dir = Path(d).expanduser()


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None, weights_only: bool = True) -> Any:  # fmt: skip
    """The object saved at `url`, downloaded once to `model_dir` (`get_dir()/checkpoints`).

    file_name: of the local copy; the URL's own by default. check_hash: the name holds the first digits of the file's
    SHA-256, as `resnet18-5c106cde.pth`, which is checked after a download. weights_only: load tensors and plain
    containers only, so that the file cannot run code; True by default, other than in torch.
    Raises: URLError where the file is not there and cannot be fetched; RuntimeError for a wrong hash.
    """
    folder = Path(model_dir) if model_dir is not None else Path(get_dir()) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (file_name or os.path.basename(urlparse(url).path))
    if not target.exists():
        print(f'Downloading: "{url}" to {target}', file=sys.stderr)  # noqa: T201 - torch says so too
        found = HASH_REGEX.search(target.name) if check_hash else None
        download_url_to_file(url, str(target), found.group(1) if found else None, progress)
    if _is_legacy_zip(target):
        return _load_zipped(target, folder, map_location, weights_only)
    return _load_file(str(target), map_location=map_location, weights_only=weights_only)


def _is_legacy_zip(path: Path) -> bool:
    """Whether the file is an archive of one saved file, not a saved file in zip format itself."""
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
    """Fetch `url` into the file `dst`, which appears only once it is whole.

    hash_prefix: first digits of the SHA-256 that it must have. progress: show how far it is, on a terminal.
    Raises: URLError where it cannot be fetched; RuntimeError for a wrong hash.
    """
    target = Path(dst).expanduser()
    try:
        response = urlopen(Request(url, headers={"User-Agent": "torch.hub"}))  # noqa: S310 - file: URLs are welcome
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
    """The local folder of a repository: given, or the copy that was downloaded under torch's name for it."""
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
    """Names of the entry points of a repository's hubconf.py. Raises as `load`."""
    _check_trust("list", trust_repo, source)
    module = _configuration(_folder(github, source, force_reload))
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,  # noqa: A001
         trust_repo: Any = "check", source: str = "github") -> str | None:  # fmt: skip
    """The docstring of an entry point. Raises as `load`."""
    _check_trust("help", trust_repo, source)
    return _entry(_configuration(_folder(github, source, force_reload)), model).__doc__


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = "check", force_reload: bool = False,
         verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    """What the entry point `model` of a repository's hubconf.py returns for the arguments. This runs its code.

    repo_or_dir: `owner/name[:ref]`, found where torch.hub keeps its copy, or a folder with `source="local"`.
    Raises: NotImplementedError for a repository that is not here; ValueError for another source; RuntimeError for a
    missing entry point or dependency; FileNotFoundError without a hubconf.py.
    """
    _check_trust("load", trust_repo, source)
    return _entry(_configuration(_folder(repo_or_dir, source, force_reload)), model)(*args, **kwargs)


def _check_trust(name: str, trust_repo: Any, source: str) -> None:
    """A copy that is here was trusted by who put it there. Raises: ValueError for a value that torch does not have either."""
    if trust_repo not in (True, False, "check", None):
        raise ValueError(f"hub.{name}: trust_repo={trust_repo!r}; allowed: True, False, None and 'check'")
    if trust_repo is False and source == "github":
        raise NotImplementedError(f"hub.{name}: trust_repo=False: a question at the terminal is not supported; pass trust_repo=True for a "
                                  "repository that you trust")  # fmt: skip
