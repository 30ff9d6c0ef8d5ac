"""Small answers on disk, each in a file with the question that it answers and a checksum of both.

Owns: the format of such a file, and that a file is whole or absent (also used for object files). Must not know: what
is asked. What cannot be trusted counts as absent, is logged, and is written anew by whoever asks again.
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

__all__ = ["read", "replace_file", "write"]

_COMPONENT = logs.component("inductor")


def read(path: Path, question: str) -> dict[str, Any] | None:
    """The answer to `question` that `path` holds, or None if there is none that can be trusted."""
    try:
        stored = json.loads(path.read_bytes())
        answer, digest = stored["answer"], stored["sha256"]
        if digest != _digest(stored["question"], answer):
            raise ValueError("its checksum is of other content")
        return answer if stored["question"] == question and isinstance(answer, dict) else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        _COMPONENT.log(f"{path} cannot be read ({type(error).__name__}: {error}); it is made again")
        return None


def write(path: Path, question: str, answer: Mapping[str, Any]) -> None:
    """Keep the answer, as far as the disk allows: it only saves time."""
    stored = {"question": question, "answer": answer, "sha256": _digest(question, answer)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(stored).encode())
    except OSError as error:
        _COMPONENT.log(f"{path} is not kept: {error}")


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` at once: others see the old file or the new one. Raises: OSError; nothing is left then."""
    # The temporary's name is unique to process and thread: of two that race, the later rename wins.
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
