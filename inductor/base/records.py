"""Small results on disk: each file holds a question, its answer and a checksum of both.

Owns the format of such a file, and its atomic replacement (also used for object files). It does not interpret the questions. A
file that is damaged or answers another question counts as absent, is logged, and is overwritten by the next result.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eager.base import logs

__all__ = ["inventory", "read", "read_any", "replace_file", "write"]

_COMPONENT = logs.component("inductor")


def read(path: Path, question: str) -> dict[str, Any] | None:
    """The answer to `question` in the file `path`, or None if the file is absent or damaged."""
    found = _read(path)
    return found[1] if found is not None and found[0] == question else None


def read_any(path: Path, prefix: str = "") -> dict[str, Any] | None:
    """The answer in the file `path` to any question that begins with `prefix`, or None as in `read`."""
    found = _read(path)
    return found[1] if found is not None and found[0].startswith(prefix) else None


def _read(path: Path) -> tuple[str, dict[str, Any]] | None:
    try:
        stored = json.loads(path.read_bytes())
        question, answer, digest = stored["question"], stored["answer"], stored["sha256"]
        if digest != _digest(question, answer):
            raise ValueError("its checksum does not match")
        return (question, answer) if isinstance(question, str) and isinstance(answer, dict) else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        _COMPONENT.log(f"{path} cannot be read ({type(error).__name__}: {error}); it is made again")
        return None


def inventory(folder: Path, prefix: str = "") -> str:
    """The number of files in a folder whose names begin with `prefix`, and a hash of the names; "" without the folder."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(".json"))
    except OSError:
        return ""
    return f"{len(names)} measured, {hashlib.sha256(' '.join(names).encode()).hexdigest()[:16]}"


def write(path: Path, question: str, answer: Mapping[str, Any]) -> None:
    """Store the answer. A write error is logged and ignored, since the file only saves time."""
    stored = {"question": question, "answer": answer, "sha256": _digest(question, answer)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(stored).encode())
    except OSError as error:
        _COMPONENT.log(f"{path} is not stored: {error}")


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` atomically: readers see the old file or the new file. Raises: OSError; the old file then remains."""
    # The temporary's name is unique to process and thread; if two of them race, the later rename wins.
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise


def _digest(question: Any, answer: Any) -> str:
    return hashlib.sha256(json.dumps([question, answer], sort_keys=True).encode()).hexdigest()
