"""Weak references and mappings of tensors by identity, because `==` of tensors is elementwise and unusable for dict keys."""
from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that equals other references to the same object; a dead one equals only itself."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A mapping that compares keys by identity and holds them weakly: an entry disappears with its key."""

    def __init__(self, dict: Any = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:  # noqa: A002 - torch's name
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        mine = weakref.ref(self)

        def forget(ref: Any) -> None:
            if (live := mine()) is not None:
                live.data.pop(ref, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # an object that does not support weak references
            return False

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            if (key := ref()) is not None:
                yield key

    def __len__(self) -> int:
        return sum(ref() is not None for ref in list(self.data))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys; some may be dead."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """A separate mapping with the same entries."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdKeyDictionary):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor. Calling it returns the tensor, or None after its death."""

    __slots__ = ("ref",)

    def __init__(self, tensor: Any) -> None:
        self.ref: Any = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()


