"""The import law: eager < fxir < {inductor, dynamo}, no lazy imports but the listed ones, one reader of the environment.

`test_layers` holds that imports form no circle.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util

import pytest

from eager.startup import first_use

from .import_graph import PACKAGES, ROOT, Import, imports, imports_by_name, imports_of, sources

MAY_IMPORT = {
    "eager": {"eager"},
    "fxir": {"eager", "fxir"},
    "inductor": {"eager", "fxir", "inductor"},
    "dynamo": {"eager", "fxir", "dynamo"},
}
FORBIDDEN = {"torch", "sympy", "jax", "tensorflow", "functorch", "torchvision"}

# Imports inside functions: (importing package, imported package) -> the reason.
LAZY = {("inductor", "concurrent"): "only a build of several units needs threads"}

# Imports by name at run time: (importer, the argument of import_module) -> the reason.
BY_NAME = {
    # optional packages and backends
    ("eager.cuda.backend", "'cupy'"): "the gpu extra",
    ("eager.cuda.backend", "'cupyx.scipy.special'"): "the gpu extra",
    ("eager.cuda.backend", "'cupyx'"): "the gpu extra",
    ("eager.cuda.backend", "'eager.cuda.cudnn_convolutions'"): "only convolutions on CUDA need it",
    ("eager.cuda.cudnn_convolutions", "'cudnn'"): "nvidia-cudnn-frontend, where it is installed",
    ("inductor.runtime.triton_source", "'triton'"): "the gpu extra",
    ("inductor.runtime.interpreter", "'triton.language'"): "the gpu extra",
    ("inductor.runtime.interpreter", "'triton.language.extra.libdevice'"): "the gpu extra",
    ("inductor.runtime.interpreter", "'triton.runtime.interpreter'"): "the gpu extra",
    ("inductor.triton.compile", "'triton.runtime.cache'"): "the gpu extra",
    ("inductor.triton.compile", "'triton.compiler'"): "the gpu extra",
    ("inductor.triton.compile", "'triton.backends.compiler'"): "the gpu extra",
    ("inductor.runtime.blas", "'cuda.pathfinder'"): "a dependency of the gpu extra",
    ("eager.utils.tensorboard.protocol", "package"): "tensorboard or tensorboardX, whichever is installed",
    ("eager.utils.tensorboard.protocol", "module"): "tensorboard or tensorboardX",
    ("eager.utils.tensorboard.protocol", "_hparams_data"): "tensorboard or tensorboardX",
    ("eager.utils.tensorboard.protocol", "_hparams_api"): "tensorboard or tensorboardX",
    ("fxir.backends", "_LAZY[name]"): "the backend that a program names",
    # the mechanism for names found on first use, and the finders
    ("eager.startup.first_use", "target"): "the modules of its table",
    ("eager.startup.absent_names", "path"): "a submodule of the module whose attribute a program reads",
    ("eager.startup.bootstrap", "self.real"): "the module that a program imports under another name",
    ("eager.startup.bootstrap", "parent"): "the package of that module",
    # modules that the user's program, file or command line names
    ("eager._ops", "module"): "torch.ops.import_module(module)",
    ("eager.as_torch.coverage", "name"): "the modules of a census",
    ("eager.as_torch.coverage", "parts[0]"): "the modules of a census",
    ("eager.as_torch.coverage", "'.'.join(parts[:i])"): "the modules of a census",
    ("dynamo.frames.opcodes.access", "name"): "the import statement of captured code",
    ("fxir.ir.graph_file", "entry['module']"): "the public functions that a saved graph calls, of eager and operator only",
    # modules of the same or of a lower layer, which a cache hit does not load
    ("inductor.driver.backend", "'inductor.driver.compile'"): "the compiler",
    ("inductor.driver.backend", "'inductor.driver.cuda_machine'"): "graphs on CUDA devices",
    ("inductor.driver.cuda_machine", "'inductor.driver.cuda_artifact'"): "the compiler for CUDA",
    ("inductor.driver.cuda_machine", "'inductor.driver.gpu_winners'"): "the compiler for CUDA",
    ("inductor.driver.cuda_machine", "'inductor.driver.gpu_profile'"): "the compiler for CUDA",
    ("inductor.driver.cuda_machine", "'inductor.driver.gpu_autotune'"): "the autotuner for CUDA",
    ("inductor.runtime.loader", "'inductor.runtime.cuda'"): "graphs on CUDA devices",
    ("inductor.runtime.cuda", "'inductor.runtime.emulated'"): "the emulated device",
    ("inductor.driver.backend", "'inductor.cpp.gemm'"): "the autotuner",
    ("inductor.driver.backend", "'inductor.driver.autotune'"): "the autotuner",
    ("inductor.driver.backend", "'inductor.driver.cpu_autotune'"): "the autotuner",
}


def _top(name: str) -> str:
    return name.partition(".")[0]


def _ours(i: Import) -> bool:
    return _top(i.target) in PACKAGES


def test_every_package_is_read() -> None:
    assert {_top(name) for name in sources()} == set(PACKAGES)
    assert len(imports()) > 100


def test_packages_import_downward_only() -> None:
    wrong = [
        str(i)
        for i in imports()
        if _ours(i) and _top(i.target) not in MAY_IMPORT[_top(i.importer)] and not (i.lazy and _allowed(i))
    ]
    assert not wrong, "\n".join(wrong)


def _allowed(i: Import) -> bool:
    return (_top(i.importer), _top(i.target)) in LAZY and _top(i.importer) != _top(i.target)


def test_function_level_imports_are_in_the_allow_list() -> None:
    lazy = [i for i in imports() if i.lazy and not i.typing]
    unused = set(LAZY) - {(_top(i.importer), _top(i.target)) for i in lazy}
    assert not unused, f"no function imports these, take them off LAZY: {unused}"
    wrong = [str(i) for i in lazy if not _allowed(i)]
    assert not wrong, "move these to the top of their file, or add a reason to LAZY:\n" + "\n".join(wrong)


def test_imports_by_name_are_in_the_allow_list() -> None:
    by_name = {(name, ast.unparse(call.args[0])): call.lineno for name, call in imports_by_name()}
    wrong = [f"{name}:{line} imports {target}" for (name, target), line in by_name.items() if (name, target) not in BY_NAME]
    assert not wrong, "\n".join(wrong)
    unused = sorted(set(BY_NAME) - set(by_name))
    assert not unused, f"these no longer import by name, take them off the list: {unused}"


# The names of torch.compiler are in `eager`; the packages above do the work.
OTHER_PACKAGES = {("eager.compiler", "dynamo.api.compile"), ("eager.compiler", "inductor.artifact.bundle")}


def test_names_found_on_first_use_are_registered_by_the_last_layer_and_exist() -> None:
    callers = {name for name, (_, tree) in sources().items() for node in ast.walk(tree)
               if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("first_use.register")}  # fmt: skip
    assert callers == {"eager", "fxir", "inductor", "eager.startup.hollow_modules"}
    for package in PACKAGES:
        importlib.import_module(package)
    for module, rows in first_use._TABLE.items():
        for name, target in rows.items():
            assert _top(target) == _top(module) or (module, target) in OTHER_PACKAGES, f"{module}.{name}"
            assert importlib.util.find_spec(target.partition(":")[0]) is not None, f"{module}.{name}"
            assert ":" not in target or first_use.find(module, name) is not None


def test_nothing_imports_another_framework() -> None:
    everywhere = [*imports(), *(i for path in sorted((ROOT / "benchmarks").rglob("*.py")) for i in imports_of(path))]
    wrong = [str(i) for i in everywhere if _top(i.target) in FORBIDDEN]
    assert not wrong, "\n".join(wrong)


# dynamo.builtins.stdlib captures what the user's code reads of the environment; it takes no decision from it.
# inductor.runtime.interpreter sets the variable that makes triton an interpreter.
ENVIRONMENT = {"eager.base.settings", "dynamo.builtins.stdlib", "inductor.runtime.interpreter"}


def test_only_the_settings_module_reads_the_environment() -> None:
    wrong = []
    for name, (_, tree) in sources().items():
        if name in ENVIRONMENT:
            continue
        for node in ast.walk(tree):
            reads = isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "putenv")
            brings = isinstance(node, ast.ImportFrom) and any(a.name in ("environ", "getenv") for a in node.names)
            if reads or brings:
                wrong.append(f"{name}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_with_code_is_a_package(package: str) -> None:
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    missing = [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()]
    assert not missing, f"setuptools would leave these out of the wheel: {missing}"
