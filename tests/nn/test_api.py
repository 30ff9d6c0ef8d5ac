"""Names and signatures against torch's (tests/data/make_nn_api.py). This file lists each difference with its reason."""
from __future__ import annotations

import fnmatch
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

API: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "nn_api.json").read_text())

# "module.name" patterns that are not here, and why.
ABSENT: dict[str, str] = {
    "nn.DataParallel.*": "steps of its work over several devices, which is not implemented",
    "nn.*.check_*": "checks of the fused kernels' arguments; made where the arguments are used",
    "nn.*.get_expected_*": "as check_*",
    "nn.*.permute_hidden": "as check_*",
    "nn.modules.rnn.apply_permutation": "deprecated for index_select",
    "nn.*LinearCrossEntropyOptions": "computing scores in chunks is not implemented",
    "nn.*.ipu": "a device that is not supported", "nn.*.mtia": "a device that is not supported",
    "nn.*.xpu": "a device that is not supported",
    "nn.*.merge_masks": "an argument of torch's fused encoder layer",
    "nn.attention.*flash_attention_impl*": "there is one implementation of attention",
    "nn.functional.ScalingType": "8-bit floating dtypes do not exist here", "nn.functional.SwizzleType": "as ScalingType",
    "nn.functional.scaled_*mm": "as ScalingType",
    "nn.functional.grouped_mm": "a prototype for one accelerator",
    "nn.functional.assert_int_or_pair": "a helper of the script compiler",
    "nn.utils.rnn.PackedSequence_": "a private base class", "nn.utils.rnn.bind": "a helper of the file",
    "nn.utils.spectral_norm.SpectralNorm*Hook": "read states of torch before 1.1",
    "optim.*.profile_hook_step": "wraps step; here `__init_subclass__` does",
    "optim.swap_in_optimizer_params_and_state": "a prototype of the graph compiler",
    "optim.lr_scheduler.SequentialLR.recursive_undo": "a step of its constructor",
    **{f"optim.{kind}.{kind}": "the update as a function of lists; the classes hold the rules" for kind in
       ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd")},
    **{f"serialization.{name}": "a part of torch's reader" for name in
       ("Storage", "StorageType", "check_module_version_greater_or_equal", "default_restore_location", "get_source_lines_and_file",
        "mkdtemp", "storage_to_tensor_type", "validate_cuda_device", "validate_hpu_device",
        "SourceChangeWarning")},
    "serialization.register_package": "there are no further devices", "serialization.?et_crc32_options": "sums are always written",
    "serialization.skip_data": "files without data are not implemented",
}  # fmt: skip
# "module.name" patterns whose signatures differ, and why.
DIFFERENT: dict[str, str] = {
    **{f"nn.functional.{name}": "takes out= (elu_ its scales), as torch's builtin does; its documentation leaves that out" for name in (
        "avg_pool2d", "avg_pool3d", "gelu", "hardshrink", "linear", "softplus", "softshrink", "elu_")},
    "nn.attention.SDPBackend": "an enum of Python, not one of C++", "serialization.safe_globals": "a function here, a class there",
}  # fmt: skip


def excluded(table: dict[str, str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in table)


def parameters(fn: Any) -> list[list[Any]]:
    result = []
    for p in inspect.signature(fn).parameters.values():
        plain = isinstance(p.default, (int, float, str, bool, type(None), tuple, list))
        default = None if p.default is inspect.Parameter.empty else repr(p.default) if plain else f"<{type(p.default).__name__}>"
        result.append([p.name, p.kind.name, default])
    return result


def differs(ours: list[list[Any]], theirs: list[list[Any]] | None) -> bool:
    """Whether a call may fit one signature and not the other. A documented default is only known to exist."""
    if theirs is None or [p[1] for p in theirs] == ["VAR_POSITIONAL", "VAR_KEYWORD"] or (
            theirs and theirs[0][0] == "self" and [p[1] for p in theirs[1:]] == ["VAR_POSITIONAL", "VAR_KEYWORD"]):  # fmt: skip
        return False  # a dispatcher that says nothing
    if len(ours) != len(theirs):
        return True
    for (name, kind, default), (their_name, their_kind, their_default) in zip(ours, theirs, strict=True):
        if name != their_name or kind != their_kind or (default is None) != (their_default is None):
            return True
        if their_default not in ("documented", None) and default != their_default:
            return True
    return False


def objects(module_name: str) -> list[tuple[str, Any, Any]]:
    module = importlib.import_module(f"eager.{module_name}")
    return [(f"{module_name}.{name}", getattr(module, name, None), entry) for name, entry in API[module_name].items()]


@pytest.mark.parametrize("module_name", sorted(API))
def test_every_public_name_of_torch_exists(module_name: str) -> None:
    missing = [name for name, found, _ in objects(module_name) if found is None and not excluded(ABSENT, name)]
    for name, found, entry in objects(module_name):
        if entry["kind"] == "class" and inspect.isclass(found):
            missing += [f"{name}.{m}" for m in entry["methods"] if not hasattr(found, m) and not excluded(ABSENT, f"{name}.{m}")]
    assert missing == []


@pytest.mark.parametrize("module_name", sorted(API))
def test_signatures_equal_torchs(module_name: str) -> None:
    wrong = []
    for name, found, entry in objects(module_name):
        if found is None or excluded(DIFFERENT, name):
            continue
        if entry["kind"] == "class" and inspect.isclass(found):
            pairs = [(name, found.__init__, entry["signature"])] if entry["signature"] else []
            pairs += [(f"{name}.{m}", getattr(found, m), s) for m, s in entry["methods"].items() if hasattr(found, m)]
        else:
            pairs = [] if entry["kind"] == "known" else [(name, found, entry["signature"])]
        for full, fn, theirs in pairs:
            if excluded(DIFFERENT, full):
                continue
            ours = parameters(fn)
            if inspect.ismethod(fn) and theirs and theirs[0][0] in ("cls", "self"):
                ours = [theirs[0], *ours]
            if differs(ours, theirs):
                show = [[f"{n}{'' if d is None else '=' + d}" for n, _, d in s] for s in (theirs or [], ours)]
                wrong.append(f"{full}: {show[0]} here {show[1]}")
    assert wrong == []


def test_every_exclusion_is_needed() -> None:
    """A name that eager now has must leave the lists."""
    absent = {name for m in API for name, found, _ in objects(m) if found is None}
    absent |= {f"{name}.{k}" for m in API for name, found, e in objects(m) if inspect.isclass(found)
               for k in e.get("methods", ()) if not hasattr(found, k)}  # fmt: skip
    stale = [p for p in ABSENT if not any(fnmatch.fnmatchcase(n, p) for n in absent)]
    assert stale == []
