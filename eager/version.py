"""Versions: this project's, and the version of torch that it implements.

Code written for torch compares `__version__` to check for the features of torch 2.x. It is therefore the
torch release whose names and semantics are the reference, with framejit's own version as the local part
("2.13.0+framejit.0.1.0", valid under PEP 440, so `packaging` parses and orders it). Quote `framejit` in a bug report.
Comparisons are by number, not by text: "2.13.0" >= "2.4".
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["TorchVersion", "__version__", "cuda", "debug", "framejit", "git_version", "hip", "xpu"]

_FORM = (  # a regular expression, compiled at first use
    r"v?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_n>\d*))?"
    r"(?:[-_.]?post[-_.]?(?P<post>\d*))?(?:[-_.]?dev[-_.]?(?P<dev>\d*))?(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_PRE_ORDER = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(text: str) -> tuple[Any, ...]:
    """A sort key in the order of PEP 440: dev < pre < release < post, then the local part.

    Raises: ValueError for text that is not a version.
    """
    m = re.fullmatch(_FORM, text.strip(), re.IGNORECASE)
    if m is None:
        raise ValueError(f"Invalid version: {text!r}")
    release = tuple(int(part) for part in m["release"].split("."))
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]  # 2.0 and 2 are equal
    if m["pre"]:
        pre = (_PRE_ORDER[m["pre"].lower()], int(m["pre_n"] or 0))
    else:
        pre = (-1, 0) if m["dev"] is not None and m["post"] is None else (3, 0)
    post = -1 if m["post"] is None else int(m["post"] or 0)
    dev = float("inf") if m["dev"] is None else int(m["dev"] or 0)
    parts = re.split(r"[-_.]", m["local"].lower()) if m["local"] else []
    local = tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts)
    return release, pre, post, dev, local


class TorchVersion(str):
    """A version string that compares by number with strings, tuples (`>= (2, 1)`) and other versions.

    Text that is not a version is compared as text, so that `==` and `!=` work with any string.
    """

    __slots__ = ()

    def _compare(self, other: Any) -> int | None:
        """-1, 0 or 1; None if `other` is not comparable."""
        if not isinstance(other, str):
            if isinstance(other, Iterable):
                other = ".".join(str(part) for part in other)
            elif hasattr(other, "release"):  # a packaging.version.Version
                other = str(other)
            else:
                return None
        try:
            mine, theirs = _key(self), _key(other)
        except ValueError:
            mine, theirs = (str(self),), (str(other),)
        return (mine > theirs) - (mine < theirs)

    def __lt__(self, other: Any) -> bool:
        c = self._compare(other)
        return NotImplemented if c is None else c < 0

    def __le__(self, other: Any) -> bool:
        c = self._compare(other)
        return NotImplemented if c is None else c <= 0

    def __gt__(self, other: Any) -> bool:
        c = self._compare(other)
        return NotImplemented if c is None else c > 0

    def __ge__(self, other: Any) -> bool:
        c = self._compare(other)
        return NotImplemented if c is None else c >= 0

    def __eq__(self, other: object) -> bool:
        c = self._compare(other)
        return NotImplemented if c is None else c == 0

    def __ne__(self, other: object) -> bool:
        c = self._compare(other)
        return NotImplemented if c is None else c != 0

    def __hash__(self) -> int:
        return str.__hash__(self)


framejit = "0.1.0"
__version__ = TorchVersion(f"2.13.0+framejit.{framejit}")
# Triton compiles GPU code and CuPy provides the toolkit: this build was not made with a toolkit.
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = "unknown"
debug = False
