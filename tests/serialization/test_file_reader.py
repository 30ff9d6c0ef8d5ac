"""PyTorchFileReader, and `Tensor.set_` with the storages that it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import eager as torch


def test_records_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"a": torch.arange(5.0), "b": torch.ones(2, dtype=torch.int64)}, path)
    reader = torch.PyTorchFileReader(str(path))
    names = reader.get_all_records()
    assert {"data.pkl", "data/0", "data/1"} <= set(names)
    assert reader.has_record("data/0") and not reader.has_record("data/9")
    assert len(reader.get_record("data/0")) == reader.get_record_size("data/0") == 20
    storage = reader.get_storage_from_record("data/0", 5, torch.float32)._typed_storage()._untyped_storage
    assert torch.empty(0).set_(storage).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(RuntimeError, match="data/9"):
        reader.get_record("data/9")
    with pytest.raises(RuntimeError, match="has 20 bytes"):
        reader.get_storage_from_record("data/0", 6, torch.float32)
    with path.open("rb") as file:
        assert torch._C.PyTorchFileReader(file).get_all_records() == names


def test_set_shares_the_memory_of_tensors_and_storages() -> None:
    x = torch.arange(6.0)
    assert torch.empty(0).set_(x.untyped_storage(), 2, (2, 2)).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert torch.empty(0).set_(x, 1, (2, 2), (1, 2)).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    y = torch.empty(0).set_(source=x.storage(), storage_offset=1, size=torch.Size([2]), stride=(2,))
    y[0] = 9.0
    assert x.tolist() == [0.0, 9.0, 2.0, 3.0, 4.0, 5.0] and y.tolist() == [9.0, 3.0]
    assert torch.ones(3).set_().shape == (0,)
    assert torch.ones(3).set_(x).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match=r"float32 .*int64"):
        torch.empty(0, dtype=torch.int64).set_(x)
    for offset, size, stride in ((4, (4,), None), (0, (2,), (6,)), (-1, (2,), None)):
        with pytest.raises(RuntimeError, match="reach past a storage of 24 bytes"):
            torch.empty(0).set_(x.untyped_storage(), offset, size, stride)
