"""Names that model libraries take when they are imported: each is there and means what it says."""

from __future__ import annotations

import pytest

import eager as torch
from eager.utils import _pytree


def test_containers_flatten_under_names_of_their_own():
    values, keys = _pytree._dict_flatten_with_keys({"a": 1, "b": 2})
    assert [(k.key, v) for k, v in values] == [("a", 1), ("b", 2)]
    assert _pytree._dict_unflatten([3, 4], keys) == {"a": 3, "b": 4}
    assert _pytree._list_flatten([1, 2]) == ([1, 2], None) and _pytree._tuple_unflatten([1, 2], None) == (1, 2)


def test_distributed_collectives_say_that_there_is_one_process():
    from eager.distributed import nn as dist_nn

    assert not torch.distributed.is_available()
    with pytest.raises(NotImplementedError, match=r"distributed\.nn\.all_reduce: framejit runs in one process"):
        dist_nn.all_reduce(torch.ones(2))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_graphs_and_generators_without_a_gpu():
    assert torch.cuda.default_generators == ()
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.cuda.CUDAGraph()
    with torch.cuda.stream(None), torch.cuda.StreamContext(None):
        pass


def test_indexing_by_batched_positions_needs_no_mode():
    from dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    x = torch.arange(12).reshape(3, 4)
    with TransformGetItemToIndex():
        rows = torch.func.vmap(lambda i: torch.func.vmap(lambda j: x[i, j])(torch.arange(4)))(torch.arange(3))
    assert torch.equal(rows, x)
