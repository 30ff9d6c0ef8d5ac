"""The backend's path: key, cache, load, call, save; and each way in which it can fail."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager import cuda
from eager.base import logs, settings
from eager.base.spec import fake_like
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from inductor.artifact import cache
from inductor.artifact.format import ArtifactPlan, ExternCall, Literal
from inductor.base import toolchain
from inductor.base.toolchain import CompileError
from inductor.driver import backend
from inductor.runtime import compiled, extern
from inductor.runtime.compiled import ArtifactError
from tests.inductor import extern_compiler

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = CompileOptions()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    extern_compiler.CALLS.clear()
    logs.forget_warnings()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a failed build keeps its sources there
    monkeypatch.setattr(backend, "_compiler", lambda: extern_compiler.compile_graph)
    with settings.scope(cache_dir=tmp_path / "cache"):
        yield


def program(fn: Callable[..., Any], n: int, root: dict[str, Any] | None = None) -> GraphModule:
    graph = Graph(root or {})
    inputs = [graph.placeholder(f"x{i}") for i in range(n)]
    constants = [graph.get_attr(key) for key in root or {}]
    graph.output(graph.call_function(fn, (*inputs, *constants)))
    return GraphModule(root or {}, graph)


def compile_(fn: Callable[..., Any], *inputs: Any, options: CompileOptions = DEFAULT, root: Any = None) -> Any:
    fakes = [fake_like(x) for x in inputs]
    for f, x in zip(fakes, inputs, strict=True):
        f._requires_grad = x.requires_grad
    return backend.inductor(program(fn, len(inputs), root), fakes, options)


def affine(x: Any) -> Any:
    return (eager.exp(x) * 2 + 1,)


def native(fn: Callable[..., Any], *inputs: Any, **more: Any) -> Any:
    """The CompiledGraph itself."""
    found: list[Any] = []
    original = backend._compile_part

    def spy(*args: Any) -> Any:
        found.append(original(*args))
        return found[-1]

    backend._compile_part = spy
    try:
        compile_(fn, *inputs, **more)
    finally:
        backend._compile_part = original
    return found[-1]


X = eager.tensor([[0.0, 1.0, -2.0], [3.0, 0.5, 0.25]])


# --------------------------------------------------------------------------- values


def test_compiled_program_returns_what_eager_returns() -> None:
    (y,) = compile_(affine, X)(X)
    assert np.allclose(y.numpy(), affine(X)[0].numpy())
    assert extern_compiler.CALLS


def test_several_outputs_an_input_returned_and_none() -> None:
    def fn(x: Any) -> Any:
        return x + 1, x, None, x.sum()

    y, same, nothing, total = compile_(fn, X)(X)
    assert same is X and nothing is None
    assert np.allclose(y.numpy(), X.numpy() + 1) and np.isclose(total.item(), X.numpy().sum())


def test_gradients_flow_through_a_compiled_program() -> None:
    x = X.clone().requires_grad_(True)
    (y,) = compile_(affine, x)(x)
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * np.exp(X.numpy()))
    kinds = {r.packing for r in extern_compiler.CALLS}
    assert kinds == {"repeated"} and len(extern_compiler.CALLS) == 2  # forward and backward


def test_lifted_constants_are_bound_not_copied() -> None:
    weight = eager.ones(2000, 3)

    def fn(x: Any, w: Any) -> Any:
        return (x.sum() + w,)

    run = compile_(fn, X, root={"weight": weight})
    before = run(X)[0].numpy().copy()
    weight.add_(1)
    assert np.allclose(run(X)[0].numpy(), before + 1)


# --------------------------------------------------------------------------- the cache


def test_second_compilation_comes_from_disk() -> None:
    first = native(affine, X)
    second = native(affine, X)
    assert len(extern_compiler.CALLS) == 1
    assert first.artifact.origin == "compiled" and second.artifact.origin == "disk cache"
    assert np.allclose(second(X)[0].numpy(), affine(X)[0].numpy())


def test_other_shapes_options_and_threads_are_other_entries() -> None:
    native(affine, X)
    native(affine, X.t())
    native(affine, X, options=CompileOptions(options={"packing": False}))
    with settings.scope(cpu_threads=7):
        native(affine, X)
    assert len(extern_compiler.CALLS) == 4


def test_reduce_overhead_shares_the_artifact_of_default_and_keeps_outputs() -> None:
    native(affine, X)
    kept = native(affine, X, options=CompileOptions(mode="reduce-overhead"))
    assert len(extern_compiler.CALLS) == 1
    address = kept(X)[0].data_ptr()
    assert kept(X)[0].data_ptr() == address
    held = kept(X)[0]
    assert kept(X)[0].data_ptr() != held.data_ptr()


def test_hit_under_other_constant_names_binds_by_position() -> None:
    def fn(x: Any, a: Any, b: Any) -> Any:
        return (x.sum() + a - b,)

    big = {"p": eager.full((2000,), 5.0), "q": eager.full((2000,), 3.0)}
    renamed = {"left": eager.full((2000,), 50.0), "right": eager.full((2000,), 30.0)}
    total = X.numpy().sum()
    assert np.allclose(compile_(fn, X, root=big)(X)[0].numpy(), total + 2)
    assert np.allclose(compile_(fn, X, root=renamed)(X)[0].numpy(), total + 20)
    assert len(extern_compiler.CALLS) == 1


def test_library_that_cannot_be_loaded_is_compiled_again() -> None:
    entry = native(affine, X).artifact.entry
    manifest_path = entry.folder / "manifest.json"
    # A whole entry whose checksums hold, but whose library is of another machine.
    alien = b"\x7fELF" + b"\0" * 200
    entry.library.write_bytes(alien)
    manifest = json.loads(manifest_path.read_text())
    files = [f for f in manifest["files"] if f[0] != entry.library.name]
    manifest["files"] = [*files, [entry.library.name, len(alien), cache._digest(alien)]]
    manifest_path.write_text(json.dumps(manifest))
    with logs.capture("cache") as records:
        again = native(affine, X)
    assert any("compiling again" in r.message for r in records)
    assert np.allclose(again(X)[0].numpy(), affine(X)[0].numpy()) and len(extern_compiler.CALLS) == 2


def test_miss_names_what_differs_in_words() -> None:
    native(affine, X)
    with logs.capture("cache") as records:
        native(affine, eager.ones(4, 3))
    message = next(r.message for r in records if r.message.startswith("miss"))
    assert "inputs is float32[4, 3], there float32[2, 3]" in message and "toolchain" not in message


SECOND_PROCESS = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import eager
from eager.base import settings as _settings
from tests.inductor.test_runtime import X, affine, compile_, native
from inductor.driver import backend
from tests.inductor import extern_compiler
if sys.argv[1] == "first":
    backend._compiler = lambda: extern_compiler.compile_graph
run = native(affine, X)
print(run.artifact.origin, run(X)[0].tolist() == affine(X)[0].tolist())
stages = ["inductor.ir.definitions", "inductor.plan.schedule", "inductor.driver.compile", "inductor.lowering", "inductor.cpp",
          "inductor.cpp.gemm", "inductor.driver.autotune", "inductor.triton"]
print([m for m in stages if m in sys.modules])
"""


def test_second_process_loads_without_importing_the_compiler(tmp_path: Path) -> None:
    def run(which: str) -> list[str]:
        environment = {**os.environ, "FRAMEJIT_CACHE_DIR": str(tmp_path / "shared")}
        done = subprocess.run(
            [sys.executable, "-c", SECOND_PROCESS, which], capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run("first")[0] == "compiled True"
    assert run("second") == ["disk cache True", "[]"]


def test_second_process_loads_without_a_compiler_being_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native(affine, X)
    monkeypatch.setattr(toolchain, "run_compiler", lambda *a: pytest.fail(f"ran {a}"))
    toolchain._toolchain.cache_clear()
    assert native(affine, X).artifact.origin == "disk cache"


# --------------------------------------------------------------------------- failures


def test_missing_compiler_is_a_compile_error_before_anything_is_built(tmp_path: Path) -> None:
    with settings.scope(cpu_cxx=str(tmp_path / "no-such-g++")), pytest.raises(CompileError, match="no-such-g"):
        compile_(affine, X)
    assert not extern_compiler.CALLS


def test_missing_compiler_at_the_backward_runs_it_op_by_op_with_one_warning(tmp_path: Path) -> None:
    x = X.clone().requires_grad_(True)
    run = compile_(affine, x)
    with (
        settings.scope(cpu_cxx=str(tmp_path / "no-such-g++"), capture_suppress_errors=True),
        logs.capture() as records,
    ):
        run(x)[0].sum().backward()
        run(x)[0].sum().backward()
    assert np.allclose(x.grad.numpy(), 4 * np.exp(X.numpy()))
    warnings = [r.message for r in records if r.level >= 30]
    assert len(warnings) == 1 and "no-such-g" in warnings[0]


def test_kernel_that_does_not_compile_is_a_compile_error_that_leaves_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        made = extern_compiler.compile_graph(*args)
        unit = made.units[0]
        return type(made)(made.plan, (type(unit)(unit.name, unit.text + "\nnot c++"),), made.notes)

    monkeypatch.setattr(backend, "_compiler", lambda: broken)
    with pytest.raises(CompileError, match="did not compile"):
        compile_(affine, X)
    monkeypatch.setattr(backend, "_compiler", lambda: extern_compiler.compile_graph)
    assert native(affine, X).artifact.origin == "compiled"


def test_unwritable_cache_compiles_in_a_temporary_folder_with_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with settings.scope(cache_dir=tmp_path / "file" / "cache"), logs.capture() as records:
        for _ in range(2):
            assert np.allclose(compile_(affine, X)(X)[0].numpy(), affine(X)[0].numpy())
    assert len([r for r in records if r.level >= 30]) == 1
    assert len(extern_compiler.CALLS) == 1  # the second one came from the temporary folder


def test_shape_error_inside_the_program_is_eagers_own() -> None:
    def fn(x: Any) -> Any:
        return (x @ x,)

    with pytest.raises(RuntimeError) as eager_error:
        fn(X)
    with pytest.raises(RuntimeError) as caught:
        compile_(fn, X)
    assert str(caught.value) == str(eager_error.value)


@pytest.mark.skipif(cuda.is_available(), reason="there is a CUDA device")
def test_a_plan_for_a_device_that_is_not_there_says_why() -> None:
    plan = ArtifactPlan((), (Literal(1),), device="cuda:0")
    with pytest.raises(RuntimeError, match="CUDA is not available"):
        backend.loader.load(plan, None, {}, name="g")


def test_plan_that_names_an_unknown_op_or_symbol_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="no_such_op"):
        extern.bind(ExternCall("no_such_op", (), ()))
    entry = native(affine, X).artifact.entry
    with pytest.raises(LookupError, match="nothing"):
        backend.loader.load(entry.plan, None, {}, name="g")


# --------------------------------------------------------------------------- looking at it, saving it


def test_logs_show_code_and_times_for_compiled_and_cached_graphs() -> None:
    for origin in ("compiled", "disk cache"):
        with logs.capture("output_code", "compile_time") as records:
            native(affine, X)
        code = next(r.message for r in records if r.name == "output_code")
        times = next(r.message for r in records if r.name == "compile_time")
        assert "EXPORT void nothing" in code and "eager exp" in code and "every op is an extern call" in code
        assert origin in times and "lookup" in times and ("g++" in times) == (origin == "compiled")


def test_explain_lists_key_steps_memory_and_notes() -> None:
    text = native(affine, X).artifact.explain()
    for expected in ("float32[2, 3]", "eager exp", "bytes of outputs", "every op is an extern call", "toolchain"):
        assert expected in text
    assert "EXPORT" not in text and "EXPORT" in native(affine, X).artifact.explain(sources=True)


def test_debug_folder_gets_every_stage(tmp_path: Path) -> None:
    with settings.scope(debug_enabled=True, debug_dir=tmp_path / "debug"):
        native(affine, X)
    (folder,) = (tmp_path / "debug").iterdir()
    assert {"graph.py", "plan.json", "unit.cpp"} <= {p.name for p in folder.iterdir()}


def constant_graph() -> Any:
    def fn(x: Any, w: Any) -> Any:
        return (x.sum() + w,)

    return native(fn, X, root={"weight": eager.arange(2000, dtype=eager.float32).reshape(2, 1000).t()})


def test_saved_artifact_runs_again_with_its_constants(tmp_path: Path) -> None:
    graph = constant_graph()
    want = graph(X)[0]
    graph.artifact.save(tmp_path / "a.fj")
    again = compiled.load(tmp_path / "a.fj")
    assert np.array_equal(again(X)[0].numpy(), want.numpy()) and again(X)[0].stride() == want.stride()
    assert not list(tmp_path.glob(".*"))


def test_saved_artifact_runs_without_cache_and_compiler(tmp_path: Path) -> None:
    constant_graph().artifact.save(tmp_path / "a.fj")
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import eager
from inductor.runtime import compiled
graph = compiled.load({str(tmp_path / "a.fj")!r})
print(graph(eager.zeros(2, 3))[0][3].tolist(), "inductor.driver.compile" in sys.modules, "inductor.driver.backend" in sys.modules)
"""
    environment = {"PATH": "/nonexistent", "FRAMEJIT_CACHE_DIR": str(tmp_path / "empty"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[3.0, 1003.0] False False"


def _rewrite(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def _edit_manifest(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        files["manifest.json"] = json.dumps({**json.loads(files["manifest.json"]), **changes}).encode()

    return change


def _spoil(name: str) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        files[name] = files[name][:-1] + bytes([files[name][-1] ^ 1])

    return change


@pytest.mark.parametrize(
    "change, text",
    [
        (_spoil("kernels.so"), "kernels.so.*damaged"),
        (_spoil("constants/0"), "constants/0.*damaged"),
        (_spoil("plan.json"), "damaged"),
        (lambda files: files.pop("plan.json"), "damaged"),
        (_edit_manifest(cpu="other"), "another CPU"),
        (_edit_manifest(format=9), "format 9"),
        (lambda files: files.update({"manifest.json": b"[]"}), "damaged"),
    ],
)
def test_damaged_or_foreign_file_is_refused(tmp_path: Path, change: Any, text: str) -> None:
    path = tmp_path / "a.fj"
    constant_graph().artifact.save(path)
    _rewrite(path, change)
    with pytest.raises(ArtifactError, match=text):
        compiled.load(path)


def test_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.fj"
    constant_graph().artifact.save(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ArtifactError):
        compiled.load(path)
    with pytest.raises(FileNotFoundError):
        compiled.load(tmp_path / "none.fj")


# --------------------------------------------------------------------------- modes


def test_max_autotune_is_a_separate_entry_and_returns_the_same(tmp_path: Path) -> None:
    native(affine, X)
    with logs.capture("autotuning") as records, settings.scope(cpu_autotune_budget_s=2):
        tuned = native(affine, X, options=CompileOptions(mode="max-autotune"))
    assert np.array_equal(tuned(X)[0].numpy(), native(affine, X)(X)[0].numpy())
    assert tuned.artifact.origin == "compiled" and any("schedules" in r.message for r in records)
    assert native(affine, X, options=CompileOptions(mode="max-autotune")).artifact.origin == "disk cache"


def test_max_autotune_setting_applies_to_every_mode() -> None:
    with settings.scope(cpu_max_autotune=True, cpu_autotune_budget_s=2):
        tuned = native(affine, X)
    assert ("mode", "max-autotune") in tuned.artifact.key.parts


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
@pytest.mark.parametrize("grad", [False, True])
def test_every_mode_agrees_with_eager_over_many_calls(mode: str, grad: bool) -> None:
    x = X.clone().requires_grad_(grad)
    with settings.scope(cpu_autotune_budget_s=1):
        run = compile_(affine, x, options=CompileOptions(mode=mode))
        held = []
        for i in range(5):
            arg = (X * (i + 1)).detach().requires_grad_(grad)
            held.append((run(arg)[0], affine(arg)[0], arg))
        for ours, eagers, arg in held:
            assert np.allclose(ours.detach().numpy(), eagers.detach().numpy())
            if grad:
                ours.sum().backward()
                assert np.allclose(arg.grad.numpy(), 2 * np.exp(arg.detach().numpy()))


def test_reduce_overhead_does_not_hold_the_history_of_a_forward() -> None:
    x = X.clone().requires_grad_(True)
    run = compile_(affine, x, options=CompileOptions(mode="reduce-overhead"))
    gone = weakref.ref(run(x)[0])
    gc.collect()
    assert gone() is None


def test_backend_is_registered_under_its_name() -> None:
    from fxir.backends import lookup

    assert lookup("inductor") is backend.inductor
    assert GraphKind.INFERENCE.value == "inference"


def test_reduce_overhead_says_what_stands_for_a_cuda_graph() -> None:
    with logs.capture("cudagraphs") as records:
        native(affine, X)
        native(affine, X, options=CompileOptions(mode="reduce-overhead"))
    (message,) = [r.message for r in records]
    assert "no CUDA graph on the CPU" in message and "24 bytes of outputs" in message
