"""The form of a graph as a function: `CodeGen`, torch.fx's hook for programs that print `forward` in another form.

Owns the default form, which this project uses throughout. A subclass changes the definition line, the output line, or the
layout of the inputs and outputs of a run; `Graph.set_codegen` installs it.
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
        """The definition line, and lines that read the placeholders from the arguments, indented by four spaces.

        free_vars: the placeholders as parameters; "self" is inserted before them.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line that returns the graph's output. The repr of `output_args` is its source."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """Convert the arguments of a run to the values of the placeholders."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Convert the graph's output to the result of a run."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the printed lines use, with their values."""
        return []


class Source:
    """Source text as an argument of `CodeGen.generate_output`: its repr is the text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
