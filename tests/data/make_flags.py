"""Write flags_torch.json.gz: every flag of torch's config modules. Run with a Python that has torch 2.13.

Each flag has its default (as JSON, or as text), the names of its types, its literal choices, the environment variables
that its definition names, and the flag that it is an alias of.
"""
from __future__ import annotations

import ast
import gzip
import importlib
import inspect
import json
import types
import typing
import warnings
from pathlib import Path
from typing import Any

MODULES = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config", "torch.compiler.config",
           "torch.fx.experimental._config")  # fmt: skip
_VARIABLES = ("TORCH", "AOT", "INDUCTOR", "CUTLASS", "LOG_", "ENABLE_", "DUMP_")


def type_names(hint: Any) -> tuple[list[str], list[Any]]:
    """The names of a hint's types, and its literal values."""
    if hint is None:
        return ["NoneType"], []
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return [], list(hint.__args__)
    if origin in (typing.Union, types.UnionType):
        parts = [type_names(part) for part in hint.__args__]
        return [name for names, _ in parts for name in names], [value for _, values in parts for value in values]
    if origin is not None:
        return [origin.__name__], []
    return [hint.__name__ if isinstance(hint, type) else "object"], []


def variables(module: Any) -> dict[str, list[str]]:
    """Flag -> the environment variables in its definition."""
    found: dict[str, list[str]] = {}

    def visit(body: list[Any], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                texts = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
                names = [text for text in texts if text.isupper() and "_" in text and text.startswith(_VARIABLES)]
                if names and isinstance(target, ast.Name):
                    found[prefix + target.id] = sorted(set(names))

    visit(ast.parse(inspect.getsource(module)).body, "")
    return found


def shown(value: Any) -> Any:
    """A default as a JSON value. An object that JSON lacks becomes a text without paths of this machine."""
    if isinstance(value, set | frozenset | tuple):
        return f"{type(value).__name__} {sorted(map(str, value))}"
    return value if isinstance(value, bool | int | float | str | list | dict | None) else f"<{type(value).__name__}>"


def main() -> None:
    warnings.filterwarnings("ignore")
    flags: dict[str, dict[str, Any]] = {}
    for name in MODULES:
        module: Any = importlib.import_module(name)
        texts = variables(module)
        flags[name] = {}
        for key, entry in sorted(module._config.items()):
            kinds, choices = type_names(entry.value_type)
            default = shown(getattr(module, key) if "." not in key else module.__getattr__(key))
            if isinstance(default, str) and "/" in default:
                default = "<folder>"
            flags[name][key] = {"default": default, "types": kinds, "choices": choices, "env": texts.get(key, []), "alias": entry.alias}
    text = json.dumps(flags, indent=0, sort_keys=True)
    Path(__file__).with_name("flags_torch.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print({name: len(found) for name, found in flags.items()})


if __name__ == "__main__":
    main()
