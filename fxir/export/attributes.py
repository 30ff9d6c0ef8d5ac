"""Attributes of modules that a traced program sets: export restores them, so that exporting changes nothing.

Owns the snapshot. It does not include parameters, buffers and submodules.
"""
from __future__ import annotations

import contextlib
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from eager._tensor.tensor import Tensor
from eager.nn import Module

_OWN: Final = frozenset(vars(Module()))  # attributes of every Module
_DICTS: Final = (dict, OrderedDict, defaultdict)
_SEQUENCES: Final = (list, deque)


class _Snapshot:
    """The attributes of some modules, and the contents of their containers."""

    def __init__(self, mod: Module) -> None:
        self._attributes = [(f"self.{name}." if name else "self.", m, dict(vars(m))) for name, m in mod.named_modules()]
        self._contents: dict[int, tuple[Any, Any]] = {}  # by id: a container and a copy of it
        for _, _, attributes in self._attributes:
            for name, value in attributes.items():
                if name not in _OWN:
                    self._keep(value)

    def _keep(self, value: Any) -> None:
        if type(value) not in (*_DICTS, *_SEQUENCES, set) or id(value) in self._contents:
            return
        self._contents[id(value)] = value, value.copy()
        for item in value.values() if isinstance(value, dict) else value:
            self._keep(item)

    def _before(self, container: Any) -> Any:
        return self._contents.get(id(container), (None, container))[1]

    def assigned_tensors(self) -> Iterator[str]:
        """Paths of attributes that now hold other tensors."""
        for prefix, m, before in self._attributes:
            for name, value in vars(m).items():
                if name not in _OWN:
                    yield from self._new_tensors(prefix + name, before.get(name), value)

    def _new_tensors(self, path: str, before: Any, value: Any) -> Iterator[str]:
        before = self._before(before)
        if isinstance(value, Tensor):
            if value is not before:
                yield path
        elif type(value) in _DICTS:
            known = before if isinstance(before, dict) else {}
            for key, item in value.items():
                yield from self._new_tensors(f"{path}[{key!r}]", known.get(key), item)
        elif isinstance(value, (*_SEQUENCES, tuple)):
            items = list(before) if isinstance(before, (*_SEQUENCES, tuple)) else []
            for i, item in enumerate(value):
                yield from self._new_tensors(f"{path}[{i}]", items[i] if i < len(items) else None, item)

    def restore(self) -> None:
        for container, before in self._contents.values():
            container.clear()
            put: Callable[[Any], Any] = container.update if isinstance(container, (dict, set)) else container.extend
            put(before)
        for _, m, before in self._attributes:
            for name in [name for name in vars(m) if name not in before]:
                del vars(m)[name]
            vars(m).update(before)


@contextlib.contextmanager
def restored_attributes(mod: Module, warn: bool) -> Iterator[None]:
    """A block that may set attributes of `mod` and its submodules: their former values are restored at its end.

    warn: whether to warn about attributes that the block set to tensors.
    """
    snapshot = _Snapshot(mod)
    try:
        yield
    finally:
        assigned = list(snapshot.assigned_tensors())
        snapshot.restore()
        if assigned and warn:
            what = "attributes" if len(assigned) > 1 else "attribute"
            warnings.warn(f"The tensor {what} {', '.join(assigned)} {'were' if len(assigned) > 1 else 'was'} assigned during export. "
                          "Such attributes must be registered as buffers using the `register_buffer` API "
                          "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer).",
                          stacklevel=3)  # fmt: skip
