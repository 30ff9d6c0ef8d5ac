"""The memory of a tensor that gets other memory ends last: code that its end runs, and other threads, see the new memory."""
from __future__ import annotations

import weakref

import eager as torch


def test_the_end_of_a_storage_sees_the_new_memory_of_its_tensor() -> None:
    x, seen = torch.ones(5), []

    def look(_: object) -> None:
        seen.append((x.data_ptr() == x.untyped_storage().data_ptr(), x.tolist()))

    watched = weakref.ref(x.untyped_storage(), look)
    x.data = torch.zeros(5)
    assert watched() is None and seen == [(True, [0.0] * 5)]


def test_the_end_of_an_array_sees_the_new_memory_of_its_tensor() -> None:
    x, seen = torch.ones(5), []
    watched = weakref.ref(x.numpy(), lambda _: seen.append(x.numpy().tolist()))
    x.data = torch.zeros(5)
    assert watched() is None and seen == [[0.0] * 5]
