"""The build of one shared library from source units, several compilers at once.

Owns the order of runs, the object files that are kept and the sources of a failed build. A cache hit does not load this module.
`inductor.base.toolchain` finds and runs the compiler.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eager.base import logs
from inductor.base import records
from inductor.base.toolchain import LIBRARIES, LINK_FLAGS, CompileError, Toolchain, Unit, compile_workers, run_compiler

__all__ = ["build"]

_COMPONENT = logs.component("inductor")


def build(units: Sequence[Unit], target: Path, tools: Toolchain, objects: Path | None = None,
          timeout_s: float | None = None) -> float:  # fmt: skip
    """Compile `units`, one compiler per core, and link them into the shared library `target`.

    objects: a folder for the object files of reusable units, named by a digest of their text and the toolchain; None keeps no
    object file. timeout_s: seconds after which a run of the compiler is stopped; None: the value in the settings.
    Returns: elapsed seconds.
    Raises: CompileError. The sources of a failed build stay on disk, at the path in its message.
    """
    tools.require()
    start = time.perf_counter()
    work = Path(tempfile.mkdtemp(prefix="framejit-"))
    try:
        sources = [_write_source(work, unit) for unit in units]
        if len(units) == 1 and not (units[0].reusable and objects):
            flags = tools.flags_for(units[0].vector_bits)
            run_compiler([tools.cxx, *flags, *LINK_FLAGS, str(sources[0]), "-o", str(target), *LIBRARIES], sources[0], timeout_s)
        else:
            made = _compile_all(units, sources, tools, objects, timeout_s)
            run_compiler([tools.cxx, *LINK_FLAGS, *map(str, made), "-o", str(target), *LIBRARIES], sources[0], timeout_s)
    except CompileError:
        _COMPONENT.log(f"the sources of the failed build are kept in {work}")
        raise
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work, ignore_errors=True)
    elapsed = time.perf_counter() - start
    _COMPONENT.log(f"compiled {len(units)} unit(s) with {os.path.basename(tools.cxx)} in {elapsed * 1e3:.0f} ms")
    return elapsed


def _write_source(work: Path, unit: Unit) -> Path:
    path = work / f"{unit.name}.cpp"
    path.write_text(unit.text)
    return path


def _compile_all(units: Sequence[Unit], sources: list[Path], tools: Toolchain, objects: Path | None,
                 timeout_s: float | None) -> list[Path]:  # fmt: skip
    with ThreadPoolExecutor(min(compile_workers(), len(units))) as pool:
        jobs = [pool.submit(_compile_one, u, s, tools, objects, timeout_s) for u, s in zip(units, sources, strict=True)]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _compile_one(unit: Unit, source: Path, tools: Toolchain, objects: Path | None, timeout_s: float | None) -> Path:
    command = [tools.cxx, *tools.flags_for(unit.vector_bits), "-c", str(source), "-o"]
    if objects is None or not unit.reusable:
        target = source.with_suffix(".o")
        run_compiler([*command, str(target)], source, timeout_s)
        return target
    digest = hashlib.sha256(f"{tools.key()}\0{unit.vector_bits}\0{unit.text}".encode()).hexdigest()[:40]
    kept = objects / f"{digest}.o"
    fresh = source.with_suffix(".o")
    if not _copy_kept(kept, fresh):
        run_compiler([*command, str(fresh)], source, timeout_s)
        _keep(fresh, kept)
    return fresh


def _copy_kept(kept: Path, fresh: Path) -> bool:
    """Copy a kept object file to `fresh` and record its use; False if it is absent or damaged.

    A copy, because another process may remove the object file before the link.
    """
    try:
        content = kept.read_bytes()
        if kept.with_suffix(".sha256").read_bytes() != hashlib.sha256(content).hexdigest().encode():
            return False
        fresh.write_bytes(content)
        os.utime(kept)
    except OSError:
        return False
    return True


def _keep(fresh: Path, kept: Path) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        content = fresh.read_bytes()
        records.replace_file(kept, content)
        records.replace_file(kept.with_suffix(".sha256"), hashlib.sha256(content).hexdigest().encode())
    except OSError as error:
        _COMPONENT.log(f"the object file {kept.name} is not stored: {error}")
