"""`torch.PyTorchFileReader`: the records of a file of `save`, one by one."""
from __future__ import annotations

import os
from typing import Any, BinaryIO

from eager.base.dtypes import dtype
from eager.functions.creation import empty
from eager.serialization.read import Archive, whole_file

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """An archive that is read record by record, by names such as "data.pkl" and "data/0".

    name_or_buffer: a path, or a file open for reading. Raises: RuntimeError for what is no archive.
    """

    def __init__(self, name_or_buffer: str | os.PathLike[str] | BinaryIO) -> None:
        self._archive = Archive(whole_file(name_or_buffer), name_or_buffer, copy=True)

    def get_all_records(self) -> list[str]:
        """The names, in the order of the file."""
        return list(self._archive.entries)

    def has_record(self, name: str) -> bool:
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """A record. Raises: RuntimeError where it is missing or damaged."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """Its bytes. Raises: as `get_record`."""
        return len(self._archive.read(name))

    def get_storage_from_record(self, name: str, numel: int, dtype: dtype) -> Any:
        """An empty tensor of `dtype` over the memory that holds the record. Raises: as `get_record`."""
        storage = self._archive.storage(name)
        if numel * dtype.itemsize > storage.nbytes():
            raise RuntimeError(f"PyTorchFileReader: {numel} elements of {dtype} from {name}, which has {storage.nbytes()} bytes")
        return empty(0, dtype=dtype).set_(storage, 0, (0,))

    def serialization_id(self) -> str:
        """What the writer called this content; "" where the file does not say."""
        name = ".data/serialization_id"
        return self._archive.read(name).decode("latin1") if name in self._archive else ""
