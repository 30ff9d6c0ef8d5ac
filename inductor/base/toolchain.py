"""The C++ compiler: finding it, probing it, and the build of one shared library with it, by several runs at once.

Owns the compiler's path, flags, runs and errors, the object files that are kept and the sources of a failed build. It does not
depend on the content of the sources or on the place where artifacts are kept.

Generated sources include nothing, so that a kernel compiles in 20-50 ms. Half of that time is the start of processes; the link
runs with -nostdlib because the driver's default libraries cost 30 ms.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from eager.base import logs
from eager.base import settings as _settings
from eager.base.records import dataclass
from inductor.base import records

__all__ = ["LIBRARIES", "LINK_FLAGS", "CompileError", "Toolchain", "Unit", "build", "compile_workers", "cpu_id", "probes",
           "run_compiler", "toolchain"]  # fmt: skip

_COMPONENT = logs.component("inductor")
_CANDIDATES = ("g++", "c++", "clang++")
_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "env"})
_PROBE_FORMAT = 4
_ERROR_LINES = 12

# -fno-math-errno and -fno-trapping-math let sqrt, floor and comparisons vectorise without -ffast-math; contraction is off
# because generated code writes each fma explicitly. Without -fno-builtin the compiler replaces calls of libm depending on the
# surrounding code: pow(x, 0.5) by sqrt(x), sin and cos of one argument by sincos.
_BASE_FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-builtin",
    "-w",
)
# GCC 12 merges two equal functions, such as two running sums of one shape, and then omits the calls of both, as if they wrote
# nothing. Equal kernels are written once anyway.
# Without -ftree-pre and -fthread-jumps a test for nan stays a value: GCC would split a chain of maxima into branches, which do not
# vectorise.
_GCC_FLAGS = ("-fno-ipa-icf", "-fno-tree-pre", "-fno-thread-jumps")
# Reusable units are cores, whose loops are written in vectors: less optimisation gives the same speed, in two thirds of the time.
_CORE_FLAGS = ("-O1",)
# The first access outside of memory, or the first undefined operation, ends the process with a report. The program must load
# libasan before all other libraries.
_SANITIZE_FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1")
_SANITIZE_LIBRARIES = ("-lasan", "-lubsan")
LINK_FLAGS = ("-shared", "-nostdlib", "-Wl,-z,defs", "-Wl,--hash-style=gnu", "-Wl,--build-id=none")
LIBRARIES = ("-lm", "-lc", "-lgcc")


class CompileError(RuntimeError):
    """There is no compiler, or the compiler rejected generated code.

    command: the command line, empty if no compiler ran. source: the file it was run on, kept on disk.
    errors: the first lines of its output.
    """

    def __init__(self, message: str, command: Sequence[str] = (), source: Path | None = None, errors: str = "") -> None:
        self.command = tuple(command)
        self.source = source
        self.errors = errors
        parts = [message]
        if errors:
            parts.append(errors)
        if source is not None:
            parts.append(f"source: {source}")
        if command:
            parts.append(f"command: {' '.join(command)}")
        super().__init__("\n".join(parts))


class Unit(Protocol):
    """One translation unit.

    name: a C identifier. text: the whole source. reusable: whether other graphs will contain exactly this text, so that its
    object file is kept. vector_bits: the SIMD width it prefers (0: the widest).
    """

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def reusable(self) -> bool: ...
    @property
    def vector_bits(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The results of a probe; all of them are part of the cache key.

    cxx: absolute path. version: its first line of --version. march: as given on the command line.
    isa: the instruction-set macros that march turns on, sorted. simd_bits: the widest vector.
    libc: name and version. vector_functions: names that libmvec exports ("_ZGVeN16v_expf"), sorted.
    cpu: vendor, model and flags of the machine, hashed. sanitize: whether code is built with AddressSanitizer and UBSan.
    present: False for a compiler that is known from an earlier process and cannot be found now; code that it has compiled runs.
    """

    cxx: str
    version: str
    march: str
    isa: tuple[str, ...]
    simd_bits: int
    libc: str
    vector_functions: tuple[str, ...]
    cpu: str
    sanitize: bool = False
    present: bool = True

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler flags of a unit that prefers no vector width."""
        return self.flags_for(0)

    def flags_for(self, vector_bits: int) -> tuple[str, ...]:
        """The compiler flags of a unit that prefers vectors of `vector_bits`; 0 means the widest."""
        bits = vector_bits or self.simd_bits
        width = (f"-mprefer-vector-width={bits}",) if self.simd_bits >= 256 else ()
        gcc = () if "clang" in self.version.lower() else _GCC_FLAGS
        sanitize = _SANITIZE_FLAGS if self.sanitize else ()
        return (*_BASE_FLAGS, *gcc, f"-march={self.march}", *width, *sanitize)

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that generated code is linked with."""
        return (*(_SANITIZE_LIBRARIES if self.sanitize else ()), *LIBRARIES)

    @property
    def has_fma(self) -> bool:
        """Whether the CPU has a fused multiply-add instruction."""
        return "__FMA__" in self.isa or "__ARM_FEATURE_FMA" in self.isa

    def key(self) -> str:
        """A digest of everything that can change the machine code, or that decides whether it may run here."""
        fields = [self.cxx, self.version, *self.flags, *LINK_FLAGS, *self.libraries, *self.isa, self.libc, self.cpu]
        fields += self.vector_functions
        return hashlib.sha256("\0".join(fields).encode()).hexdigest()[:32]

    def require(self) -> None:
        """Raises: CompileError if the compiler is not present."""
        if not self.present:
            _find(_settings.current().cpu.cxx)


def toolchain() -> Toolchain:
    """The compiler for the current settings, probed once per machine and process.

    Without a compiler: the compiler that was used last on this machine, not `present`. Its key finds the artifacts on disk.
    Raises: CompileError if there is no compiler and never was, or if it cannot compile an empty file.
    """
    settings = _settings.current()
    # `which` depends on PATH; after a test or user changes PATH, the compiler is searched again.
    return _toolchain(
        settings.cpu.cxx, settings.cpu.march, settings.cpu.sanitize, settings.cache.dir, settings.cache.enabled, shutil.which("g++")
    )


@lru_cache(maxsize=16)
def _toolchain(
    wanted: str, march: str, sanitize: bool, cache_dir: Path, use_disk: bool, _path_probe: str | None
) -> Toolchain:
    try:
        cxx = _find(wanted)
    except CompileError as missing:
        earlier = _used_last(wanted, march, cache_dir / "toolchains") if use_disk else None
        if earlier is None:
            raise
        _COMPONENT.log(f"{str(missing).splitlines()[0]}; artifacts that {earlier.cxx} has compiled are used")
        return replace(earlier, sanitize=sanitize, present=False)
    stat = os.stat(cxx)
    cpu = cpu_id()
    identity = f"{_PROBE_FORMAT}|{cxx}|{stat.st_size}|{stat.st_mtime_ns}|{march}|{cpu}|{_libc()}"
    name = hashlib.sha256(identity.encode()).hexdigest()[:32]
    path = cache_dir / "toolchains" / f"{name}.json"
    found = _read_probe(path, identity) if use_disk else None
    if found is not None:
        with suppress(OSError):  # a read-only folder
            os.utime(path)
    if found is None:
        found = _probe(cxx, march, cpu)
        if use_disk:
            records.write(path, identity, asdict(found))
    return replace(found, sanitize=sanitize)


def _find(wanted: str) -> str:
    # CXX may be a whole command ("ccache g++ -m64"). The launcher is dropped, since for a compilation of 30 ms it costs more
    # than it saves. The flags are dropped too: this module sets them.
    words = [w for w in wanted.split() if not w.startswith("-") and os.path.basename(w) not in _LAUNCHERS]
    for name in (wanted, *words[:1]) if wanted else _CANDIDATES:
        path = shutil.which(name)
        if path is not None:
            return os.path.abspath(path)
    if wanted:
        raise CompileError(
            f"inductor: the C++ compiler {wanted!r} (from FRAMEJIT_CXX or CXX) was not found; "
            "set it to the path of g++ or clang++"
        )
    raise CompileError(
        f"inductor: no C++ compiler was found; looked for {', '.join(_CANDIDATES)} on PATH; "
        "install one (Debian/Ubuntu: apt install g++) or set FRAMEJIT_CXX to its path"
    )


@lru_cache(maxsize=1)
def cpu_id() -> str:
    """Which CPU this is: a digest of vendor, model and feature flags of the first core.

    Code made with -march=native must never follow a cache to another CPU.
    """
    wanted = {"vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer", "CPU part", "Features"}
    lines = [platform.machine()]
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break  # the second core: on a large machine the whole file takes 10 ms
                if line.split(":", 1)[0].strip() in wanted:
                    lines.append(line.strip())
    except OSError:
        lines.append(platform.processor())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        return "-".join(platform.libc_ver()) or "unknown"


# --------------------------------------------------------------------------- probing


def _probe(cxx: str, march: str, cpu: str) -> Toolchain:
    version = run_compiler([cxx, "--version"], None).partition("\n")[0]
    if not version:
        raise CompileError("inductor: the compiler does not report its version; is it g++ or clang++?", [cxx, "--version"])
    macros = run_compiler([cxx, f"-march={march}", "-dM", "-E", "-x", "c++", os.devnull], None)
    names = set(re.findall(r"^#define (\w+)", macros, re.MULTILINE))
    isa = tuple(sorted(n for n in names if re.match(r"__(AVX|SSE|FMA|F16C|BMI|VNNI|AMX|ARM_FEATURE|POPCNT)", n)))
    bits = 512 if "__AVX512F__" in names else 256 if "__AVX2__" in names else 128
    return Toolchain(cxx, version, march, isa, bits, _libc(), _libmvec_functions(cxx), cpu)


def _libmvec_functions(cxx: str) -> tuple[str, ...]:
    """The vector functions that exist in libmvec. Its declarations also promise functions that do not exist (fmodf)."""
    path = run_compiler([cxx, "-print-file-name=libmvec.so.1"], None).strip()
    if not os.path.isabs(path):
        return ()
    try:
        library, text = ctypes.CDLL(path), Path(path).read_bytes()
    except OSError:  # of another architecture
        return ()
    names = {word.decode() for word in re.findall(rb"_ZGV\w+", text)}
    return tuple(sorted([n for n in names if hasattr(library, n)]))


def _read_probe(path: Path, identity: str) -> Toolchain | None:
    found = records.read(path, identity)
    if found is None:
        return None
    return _from_answer(found)


def _from_answer(answer: dict[str, Any]) -> Toolchain:
    lists = {name: tuple(answer[name]) for name in ("isa", "vector_functions")}
    return Toolchain(**{**answer, **lists})


def probes(folder: Path) -> Iterator[tuple[Path, Toolchain]]:
    """The valid files of probes in `folder` (`<cache>/toolchains`), the file used last first, with their results."""
    dated = []
    for path in folder.glob("*.json"):
        with suppress(OSError):  # another process removes it
            dated.append((path.stat().st_mtime, path))
    for _, path in sorted(dated, reverse=True):
        answer = records.read_any(path, f"{_PROBE_FORMAT}|")
        if answer is not None:
            yield path, _from_answer(answer)


def _used_last(wanted: str, march: str, folder: Path) -> Toolchain | None:
    """The compiler used last on this machine for `march` and the name `wanted` (empty: any compiler)."""
    names = {os.path.basename(word) for word in wanted.split()}
    for _, found in probes(folder):
        named = not names or os.path.basename(found.cxx) in names
        if named and (found.march, found.cpu, found.libc) == (march, cpu_id(), _libc()):
            return found
    return None


# --------------------------------------------------------------------------- running the compiler


def run_compiler(command: Sequence[str], source: Path | None, timeout_s: float | None = None) -> str:
    """The output of one run of the compiler. source: the file that it compiles, for the message of an error.

    timeout_s: seconds after which the run is stopped; None: the value in the settings. Raises: CompileError.
    """
    setting = "FRAMEJIT_COMPILE_TIMEOUT_S" if timeout_s is None else "FRAMEJIT_UNROLL_TIMEOUT_S"
    if timeout_s is None:
        timeout_s = _settings.current().cpu.compile_timeout_s or None
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise CompileError(
            f"inductor: the compiler was stopped after {timeout_s} s ({setting})", command, source
        ) from None
    except OSError as error:
        raise CompileError(f"inductor: the compiler cannot be run: {error}", command, source) from None
    if done.returncode != 0:
        raise CompileError(
            _ending(done.returncode, source), command, source, _first_errors(done.stderr.decode(errors="replace"))
        )
    return done.stdout.decode(errors="replace")


def _ending(returncode: int, source: Path | None) -> str:
    if returncode < 0:
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = str(-returncode)
        return f"inductor: the compiler was killed by {name} (out of memory?)"
    what = "the compiler failed" if source is None else "generated code did not compile"
    return f"inductor: {what} (exit status {returncode})"


def _first_errors(text: str) -> str:
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if "error" in line or "undefined" in line), 0)
    kept = lines[start : start + _ERROR_LINES]
    left = len(lines) - start - len(kept)
    return "\n".join([*kept, f"... {left} more lines"] if left > 0 else kept)


def compile_workers() -> int:
    """The number of compiler processes that run at once."""
    return _settings.current().cpu.compile_workers or len(os.sched_getaffinity(0))


# -- builds ----------------------------------------------------------------------------------------------------------


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
            command = [tools.cxx, *flags, *LINK_FLAGS, str(sources[0]), "-o", str(target), *tools.libraries]
            run_compiler(command, sources[0], timeout_s)
        else:
            made = _compile_all(units, sources, tools, objects, timeout_s)
            command = [tools.cxx, *LINK_FLAGS, *map(str, made), "-o", str(target), *tools.libraries]
            run_compiler(command, sources[0], timeout_s)
    except CompileError:
        _COMPONENT.log(f"the sources of the failed build are kept in {work}")
        raise
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work, ignore_errors=True)
    elapsed = time.perf_counter() - start
    if _COMPONENT.enabled:
        _COMPONENT.log(f"compiled {len(units)} unit(s) with {os.path.basename(tools.cxx)} in {elapsed * 1e3:.0f} ms")
    return elapsed


def _write_source(work: Path, unit: Unit) -> Path:
    path = work / f"{unit.name}.cpp"
    path.write_text(unit.text)
    return path


def _compile_all(units: Sequence[Unit], sources: list[Path], tools: Toolchain, objects: Path | None,
                 timeout_s: float | None) -> list[Path]:  # fmt: skip
    from concurrent.futures import ThreadPoolExecutor  # here: most builds have one unit, and need no threads

    with ThreadPoolExecutor(min(compile_workers(), len(units))) as pool:
        jobs = [pool.submit(_compile_one, u, s, tools, objects, timeout_s) for u, s in zip(units, sources, strict=True)]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _compile_one(unit: Unit, source: Path, tools: Toolchain, objects: Path | None, timeout_s: float | None) -> Path:
    flags = (*tools.flags_for(unit.vector_bits), *(_CORE_FLAGS if unit.reusable else ()))
    command = [tools.cxx, *flags, "-c", str(source), "-o"]
    if objects is None or not unit.reusable:
        target = source.with_suffix(".o")
        run_compiler([*command, str(target)], source, timeout_s)
        return target
    digest = hashlib.sha256("\0".join((tools.key(), *flags, unit.text)).encode()).hexdigest()[:40]
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
