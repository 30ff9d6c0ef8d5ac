"""The import law: eager < fxir < {inductor, dynamo}, no lazy imports but the listed ones, one reader of the environment.

`test_layers` holds that imports form no circle.
"""

from __future__ import annotations

import ast

import pytest

from .import_graph import PACKAGES, ROOT, Import, imports, imports_by_name, imports_of, sources

MAY_IMPORT = {
    "eager": {"eager"},
    "fxir": {"eager", "fxir"},
    "inductor": {"eager", "fxir", "inductor"},
    "dynamo": {"eager", "fxir", "dynamo"},
}
FORBIDDEN = {"torch", "sympy", "jax", "tensorflow", "functorch", "torchvision"}

# Imports inside functions or by name at run time, each with its reason. Nothing else may import lazily.
LAZY = {
    ("eager", "cupy"): "the gpu extra, only when a CUDA tensor is made",
    ("eager", "cupyx"): "as cupy",
    ("eager", "dynamo"): "eager.compile: the upper package, when it is first called",
    ("inductor", "triton"): "the gpu extra, only when Triton code is compiled",
    ("inductor", "cupy"): "the gpu extra, only when a kernel is loaded on a GPU",
    ("fxir", "inductor"): "the backend, by name, at its first lookup",
}

# Modules that import by name at run time.
BY_NAME = {
    "eager._ops": "the module that torch.ops.import_module names, for the operators that it declares",
    "eager.startup.absent_names": "a submodule of the module whose attribute it is, or a module with another name in torch",
    "eager.startup.first_use": "the modules of its table",
    "eager.startup.bootstrap": "the module of this project that the user imports under another name",
    "eager.as_torch.coverage": "the modules that a census names",
    "dynamo": "its modules under torch's names that few programs need",
    "dynamo.frames.opcodes.access": "on behalf of captured code, what its own import statement names",
    "eager.cuda.backend": "cupy",
    "eager.utils.tensorboard.protocol": "tensorboard or tensorboardX, whichever is installed",
    "fxir": "its classes, which most of its modules import",
    "fxir.ir.graph_file": "the public functions that a saved graph calls, of eager and operator only",
    "fxir.backends": "the backend, by name",
    "inductor": "its config, which few programs touch",
    "inductor.driver.backend": "the compiler and the autotuner, which a cache hit does not need",
    "inductor.triton.compile": "triton",
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
    wrong = [str(i) for i in imports() if i.lazy and not i.typing and not _allowed(i)]
    assert not wrong, "move these to the top of their file, or add a reason to LAZY:\n" + "\n".join(wrong)


def test_imports_by_name_are_in_the_allow_list() -> None:
    by_name: dict[str, int] = {}
    for name, call in imports_by_name():
        by_name[name] = call.lineno
    wrong = [f"{name}:{line}" for name, line in by_name.items() if name not in BY_NAME]
    assert not wrong, "\n".join(wrong)
    unused = sorted(set(BY_NAME) - set(by_name))
    assert not unused, f"these no longer import by name, take them off the list: {unused}"


def test_nothing_imports_another_framework() -> None:
    everywhere = [*imports(), *(i for path in sorted((ROOT / "benchmarks").rglob("*.py")) for i in imports_of(path))]
    wrong = [str(i) for i in everywhere if _top(i.target) in FORBIDDEN]
    assert not wrong, "\n".join(wrong)


# dynamo.builtins.stdlib captures what the user's code reads of the environment; it takes no decision from it.
ENVIRONMENT = {"eager.base.settings", "dynamo.builtins.stdlib"}


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
