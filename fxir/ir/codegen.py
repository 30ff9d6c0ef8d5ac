"""How a graph is written as a function: `CodeGen`, torch.fx's hook for a program's own form of `forward`.

Owns the default form, which every part of this package uses. A subclass changes the definition line, the output line, or
how the inputs and outputs of a run are laid out; it is set with `Graph.set_codegen`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

TransformCode: TypeAlias = Callable[[list[str]], list[str]]


class CodeGen:
    """Writes `def forward(self, x, ...):` and `return ...`; runs take one argument per placeholder."""

    def __init__(self) -> None:
        self._body_transformer: TransformCode | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The definition line, and lines that read the placeholders from the arguments, indented by four blanks.

        free_vars: the placeholders as parameters; "self" is put before them.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line that returns the graph's output. The repr of `output_args` is its source."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of a run."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of a run, from the graph's output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the written lines refer to, with their values."""
        return []


class Source:
    """Source text as an argument of `CodeGen.generate_output`: its repr is the text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
