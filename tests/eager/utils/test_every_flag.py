"""Every flag of torch's config modules acts, or is kept with a reason, or is refused by name; each checks its values."""
from __future__ import annotations

import gzip
import importlib
import json
import pickle
import re
import subprocess
import sys
import unittest
import unittest.mock
from pathlib import Path
from typing import Any

import pytest

import eager
from eager.base import settings
from eager.utils._config_module import Alias, Config, Hint, Only, Setting

torch: Any = eager
FLAGS: dict[str, dict[str, Any]] = json.loads(gzip.decompress((Path(__file__).parents[2] / "data" / "flags_torch.json.gz").read_bytes()))
# Names that torch's modules hold and that are not flags of a program.
NO_FLAGS = re.compile(r"TYPE_CHECKING|_save_config_ignore|_cache_config_\w+|is_nightly_or_source|base_dir|is_non_builtin_to_include|"
                      r"_test_disable_functionalization|validate_shape_env_version_key")  # fmt: skip
# Flag -> why its default is not torch's.
OTHER_DEFAULT = {
    "torch._dynamo.config.suppress_errors": "a fault of the compiler costs speed, not the result; a warning says so",
    "torch._dynamo.config.enable_aot_compile": "a compiled function has no aot_compile",
    "torch._inductor.config.compile_threads": "the cores of this machine",
    "torch._inductor.config.fx_graph_cache": "the tests choose",
}
SETTINGS = {name for described in settings.describe() for name in described.env}
CASES = [(module, flag) for module, flags in FLAGS.items() for flag in flags if not NO_FLAGS.fullmatch(flag)]


def config_of(module: str) -> Config:
    found = importlib.import_module(module.replace("torch", "eager", 1))
    assert isinstance(found, Config)
    return found


def other_values(config: Config, flag: str) -> list[Any]:
    """Values of the flag's type that are not its default."""
    accepted = config.entry(flag).values()
    if accepted.choices:
        return [choice for choice in accepted.choices if choice != accepted.default]
    examples: dict[type, list[Any]] = {bool: [True, False], int: [3, 5], float: [0.25], str: ["text"], list: [["a"]], dict: [{"a": 1}],
                                       set: [{print}], tuple: [(1,)], object: [print]}  # fmt: skip
    if isinstance(config.entry(flag), Setting) and int in accepted.types:
        return [3]
    now = config.read(flag)
    return [v for kind in accepted.types for v in examples.get(kind, [None]) if v != now or type(v) is not type(now)]


def test_every_flag_of_torch_is_in_a_table_with_its_reason() -> None:
    for module in FLAGS:
        known = set(config_of(module).names())
        assert {flag for of, flag in CASES if of == module} - known == set(), module
        for flag in known:
            entry = config_of(module).entry(flag)
            assert not isinstance(entry, Hint | Only) or len(entry.why) > 15, flag


def test_defaults_agree_with_torch() -> None:
    wrong = []
    with settings.scope(cpu_threads=0):  # set_num_threads of another test would show
        for module, flag in CASES:
            config, default = config_of(module), FLAGS[module][flag]["default"]
            entry = config.entry(flag)
            ours = config.read(flag) if isinstance(entry, Setting | Alias) else entry.values().default
            if isinstance(ours, set | tuple):
                ours = f"{type(ours).__name__} {sorted(map(str, ours))}"
            same = ours == default and type(ours) is type(default)
            if not same and default != "<folder>" and f"{module}.{flag}" not in OTHER_DEFAULT:
                wrong.append((module, flag, ours, default))
    assert wrong == []


def test_a_value_of_the_wrong_type_is_refused_with_the_allowed_ones() -> None:
    for module, flag in CASES:
        config = config_of(module)
        accepted = config.entry(flag).values()
        if object in accepted.types or isinstance(config.entry(flag), Alias):
            continue  # a callable or an object of the program's own
        before = config.read(flag)
        for set_flag in (lambda v, c=config, f=flag: setattr(c, f, v), lambda v, c=config, f=flag: c.patch({f: v}).__enter__(),
                         lambda v, c=config, f=flag: c.load_config({f: v})):  # fmt: skip
            with pytest.raises((TypeError, ValueError), match=rf"{re.escape(flag.rpartition('.')[2])}=.*allowed: "):
                set_flag(b"wrong")
        assert config.read(flag) == before, flag


def test_another_value_acts_or_is_kept_or_is_refused_by_name() -> None:
    for module, flag in CASES:
        config = config_of(module)
        entry = config.entry(flag)
        values = other_values(config, flag)
        if isinstance(entry, Alias):
            continue
        assert values or len(entry.values().choices) == 1, flag
        before = config.read(flag)
        for value in values:
            if isinstance(entry, Only):
                with pytest.raises(NotImplementedError, match=re.escape(flag.rpartition(".")[2])), config.patch({flag: value}):
                    pass
            elif value is not None:
                with config.patch({flag: value}):
                    kept = config.read(flag)
                    assert kept == value or Path(kept).name == value, flag
                    if isinstance(entry, Setting):
                        assert config.read(flag) != before
        assert config.read(flag) == before, flag


def test_options_of_compile_are_checked_like_the_flags() -> None:
    config = config_of("torch._inductor.config")
    for flag in config.names():
        if object in config.entry(flag).values().types:
            continue
        with pytest.raises((RuntimeError, TypeError, NotImplementedError), match=re.escape(flag)):
            torch.compile(lambda x: x, options={flag: b"wrong"})
        entry = config.entry(flag)
        if isinstance(entry, Only):
            scalars = [v for v in other_values(config, flag) if isinstance(v, bool | int | float | str)]
            for value in scalars:
                with pytest.raises(NotImplementedError, match=re.escape(flag)):
                    torch.compile(lambda x: x, options={flag: value})


def test_a_saved_config_is_loaded_again() -> None:
    for module in FLAGS:
        config = config_of(module)
        saved = config.save_config()
        assert pickle.loads(saved).keys() <= set(config.names())
        config.load_config(saved)
        digest = config.get_hash()
        hint = next((flag for flag in config.names() if isinstance(config.entry(flag), Hint) and config.read(flag) is False), None)
        if hint is not None:
            with config.patch({hint: True}):
                assert config.get_hash() != digest
                assert f"{module}.{hint} = True" in config.codegen_config().splitlines()
        assert config.get_hash() == digest
        with pytest.warns(UserWarning, match="key no_flag with value 1 is not understood by this config"):
            config.load_config({"no_flag": 1})


def test_a_patch_decorates_functions_and_test_cases() -> None:
    config = torch._inductor.config

    @config.patch(max_fusion_size=3)
    class Case(unittest.TestCase):
        def test_value(self) -> None:
            self.assertEqual(config.max_fusion_size, 3)

    @config.patch("triton.descriptive_names", "torch")  # type: ignore[untyped-decorator]
    def value() -> Any:
        return config.triton.descriptive_names

    assert unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(unittest.TestResult()).wasSuccessful()  # type: ignore[attr-defined]
    assert value() == "torch"
    assert config.max_fusion_size == 64
    assert config.triton.descriptive_names == "original_aten"
    with unittest.mock.patch.object(config, "max_fusion_size", 5):
        assert config.max_fusion_size == 5
    assert config.max_fusion_size == 64


def test_aliases_are_one_flag() -> None:
    with torch.compiler.config.patch(wrap_top_frame=False), torch._dynamo.config.patch(enable_cpp_symbolic_shape_guards=True):
        assert torch.compiler.config.enable_cpp_symbolic_shape_guards is True
    with torch.compiler.config.patch(recompile_limit=3):
        assert torch._dynamo.config.cache_size_limit == torch._dynamo.config.recompile_limit == 3
    for module, flag in CASES:
        alias = FLAGS[module][flag]["alias"]
        if alias:
            of, _, name = alias.rpartition(".")
            assert config_of(module).read(flag) == config_of(of).read(name), flag


VARIABLES = {
    "TORCHDYNAMO_VERBOS=1": r"TORCHDYNAMO_VERBOS sets no flag of torch\._dynamo\.config; did you mean TORCHDYNAMO_VERBOSE",
    "TORCHINDUCTOR_FREEZING=1": r"TORCHINDUCTOR_FREEZING='1' has no effect: torch\._inductor\.config\.freezing=True: weights",
    "TORCHINDUCTOR_MAX_AUTOTUN=1": r"TORCHINDUCTOR_MAX_AUTOTUN sets no flag .*; did you mean TORCHINDUCTOR_MAX_AUTOTUNE",
    "FRAMEJIT_THREAD=1": r"FRAMEJIT_THREAD is not a setting of framejit; did you mean FRAMEJIT_THREADS",
}
QUIET = {"TORCHINDUCTOR_CUDAGRAPHS": "0", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_EPILOGUE_FUSION": "0",
         "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1", "TORCHDYNAMO_VERBOSE": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}  # fmt: skip
PROGRAM = """
import eager as torch
torch.compile(lambda x: x + 1, backend="eager")
c, d = torch._inductor.config, torch._dynamo.config
print(c.fx_graph_cache, c.coordinate_descent_tuning, c.epilogue_fusion, d.verbose, c.compile_threads)
"""


def test_environment_variables_act_or_are_warned_of() -> None:
    texts = dict(variable.split("=") for variable in VARIABLES)
    env = {**QUIET, **texts, "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, cwd=Path(__file__).parents[3])
    assert done.stdout.split() == ["False", "True", "False", "True", "1"], done.stderr
    for pattern in VARIABLES.values():
        assert re.search(pattern, done.stderr), (pattern, done.stderr)
    for name in QUIET:
        assert f"{name}=" not in done.stderr
        assert f"{name} " not in done.stderr


def test_every_variable_that_torch_documents_by_a_prefix_is_known() -> None:
    for module, prefix in (("torch._dynamo.config", "TORCHDYNAMO_"), ("torch._inductor.config", "TORCHINDUCTOR_")):
        config = config_of(module)
        assert config.flag_of(f"{prefix}NO_SUCH_FLAG") is None
        for flag, facts in FLAGS[module].items():
            for variable in facts["env"]:
                if variable.startswith(prefix) and not NO_FLAGS.fullmatch(flag):
                    assert config.flag_of(variable) is not None or variable in SETTINGS, variable


