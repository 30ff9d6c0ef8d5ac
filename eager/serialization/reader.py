"""`torch.PyTorchFileReader`: access to the single records of a file of `save`."""
from __future__ import annotations

import os
from typing import Any, BinaryIO

from eager.base.dtypes import dtype
from eager.functions.creation import empty
from eager.serialization.read import Archive, whole_file

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """An archive with access to single records, by names such as "data.pkl" and "data/0".

    name_or_buffer: a path, or a file open for reading. Raises: RuntimeError for a file that is not an archive.
    """

    def __init__(self, name_or_buffer: str | os.PathLike[str] | BinaryIO) -> None:
        self._archive = Archive(whole_file(name_or_buffer), name_or_buffer, copy=True)

    def get_all_records(self) -> list[str]:
        """The names of the records, in file order."""
        return list(self._archive.entries)

    def has_record(self, name: str) -> bool:
        """Whether the archive has a record of this name."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """The bytes of a record. Raises: RuntimeError if it is missing or damaged."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """The size of a record in bytes. Raises: as `get_record`."""
        return len(self._archive.read(name))

    def get_storage_from_record(self, name: str, numel: int, dtype: dtype) -> Any:
        """An empty tensor of `dtype` whose storage holds the record. Raises: as `get_record`."""
        storage = self._archive.storage(name)
        if numel * dtype.itemsize > storage.nbytes():
            raise RuntimeError(f"PyTorchFileReader: {numel} elements of {dtype} from {name}, which has {storage.nbytes()} bytes")
        return empty(0, dtype=dtype).set_(storage, 0, (0,))

    def serialization_id(self) -> str:
        """The writer's id of this content; "" if the file lacks it."""
        name = ".data/serialization_id"
        return self._archive.read(name).decode("latin1") if name in self._archive else ""
