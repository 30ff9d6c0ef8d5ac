"""Random programs as source: tensors of all dtypes, views of them, writes in place and through `out=`, in any mixture.

The generator runs each step as it appends it, and drops steps that eager refuses. The program is a function of two tensors
that returns every value it computes. A test runs the function in two modes and compares values, dtypes, layouts and the
writes to the arguments. The reference is eager itself; other tests compare eager with torch.
"""
from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import eager as torch

_DTYPES = "float32 float32 float64 float16 bfloat16 int64 int32 int16 uint8 bool complex64".split()
_UNARY = ("neg abs sin exp square floor sign relu sigmoid sqrt log1p reciprocal logical_not isfinite sgn frac clone contiguous "
          "nan_to_num tril triu std norm").split()  # fmt: skip
_UNARY_IN_PLACE = "neg_ abs_ square_ floor_ relu_ sigmoid_ zero_ round_ nan_to_num_ logical_not_ t_ squeeze_ tril_ exp_".split()
_BINARY = ("add sub mul div remainder maximum minimum fmod eq lt ge logical_and bitwise_xor copysign atan2 floor_divide where").split()
_OPERATORS = "+ - * / // % == < & |".split()
_NUMBERS = "2 -1 0.5 0 True 1.5 1j 3".split()
_BREAKS = [f"{block}torch._dynamo.graph_break()" for block in ("", "with torch.no_grad(): ", "with torch.enable_grad(): ")]
_REDUCTIONS = "sum mean prod amax argmin any logsumexp count_nonzero var cumsum softmax".split()


@dataclass
class Mixed:
    """A program: `steps` are lines of source over `names`. The first two names are the arguments; `starts` are their source."""

    starts: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def arguments(self) -> list[Any]:
        """New tensors with the same values in each call."""
        return [eval(text, {"torch": torch}) for text in self.starts]

    @property
    def source(self) -> str:
        body = "".join(f"    {step}\n" for step in self.steps)
        return f"def program({', '.join(self.names[: len(self.starts)])}):\n{body}    return ({', '.join(self.names)},)\n"

    def function(self) -> Any:
        scope: dict[str, Any] = {"torch": torch}
        exec(compile(self.source, "<mixed program>", "exec"), scope)
        return scope["program"]


class _Grower:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.program = Mixed()
        self.scope: dict[str, Any] = {"torch": torch}

    def one_of(self, choices: Any) -> Any:
        return self.random.choice(choices)

    def name(self) -> str:
        return self.one_of(self.program.names)  # type: ignore[no-any-return]

    def dim(self, name: str) -> int:
        n = max(self.scope[name].ndim, 1)
        return self.random.randrange(-n, n)

    def start(self) -> str:
        dtype, shape = self.one_of(_DTYPES), [self.one_of([1, 2, 2, 3, 4]) for _ in range(self.one_of([1, 1, 2, 2, 3]))]
        count = torch.Size(shape).numel()
        values = [self.one_of([0, 1, 2, 3, 5] if dtype in ("uint8", "bool") else [0, 1, 2, -1, -3, 0.5, 2.75]) for _ in range(count)]
        return f"torch.tensor({values}).to(torch.{dtype}).reshape({tuple(shape)})"

    def key(self, name: str) -> str:
        parts = [self.one_of([str(self.random.randrange(-n, n)), f"{self.random.randrange(n)}:", "::2", "None", ":", "...",
                              f"torch.tensor({[self.random.randrange(n) for _ in range(2)]})"])
                 for n in self.scope[name].shape[: self.random.randint(1, 2)] if n]  # fmt: skip
        if not parts:
            return "..."
        return ", ".join(parts) if parts.count("...") < 2 else "..."

    def value(self) -> str:
        """Source of an expression that computes a value."""
        x, y, name = self.name(), self.name(), self.one_of(_BINARY)
        d = self.dim(x)
        return self.one_of([  # type: ignore[no-any-return]
            f"{x}.{self.one_of(_UNARY)}()", f"torch.where({x} > 0, {x}, {y})" if name == "where" else f"torch.{name}({x}, {y})",
            f"{x} {self.one_of(_OPERATORS)} {y}", f"{x} {self.one_of(_OPERATORS)} {self.one_of(_NUMBERS)}",
            f"{x}.{self.one_of(_REDUCTIONS)}({d})", f"{x}[{self.key(x)}]", f"{x}.flip({d})", f"{x}.sort({d})[0]", f"{x}.cummax({d})[0]",
            f"{x}.transpose({d}, {self.dim(x)})", f"{x}.reshape(-1)", f"{x}.unsqueeze({d})", f"{x}.expand(2, *{x}.shape)",
            f"{x}.to(torch.{self.one_of(_DTYPES)})", f"{x}.view(torch.{self.one_of(_DTYPES)})", f"torch.cat([{x}, {y}], {d})",
            f"torch.stack([{x}, {x}], {d})", f"{x} @ {y}.mT", f"{x}.unfold({d}, 1, 1)", f"{x}.diagonal()", f"{x}.real",
            f"torch._foreach_mul([{x}], [{y}])[0]", f"{x}.detach()", f"{x}.narrow({d}, 0, 1)",
        ])  # fmt: skip

    def write(self) -> str:
        """Source of a statement that changes a value in place."""
        x, y, n = self.name(), self.name(), self.one_of(_NUMBERS)
        d = self.dim(x)
        return self.one_of([  # type: ignore[no-any-return]
            f"{x}.{self.one_of(_UNARY_IN_PLACE)}()", f"{x} {self.one_of(_OPERATORS[:6])}= {self.one_of([y, n])}",
            f"{x}[{self.key(x)}] = {self.one_of([y, n])}", f"{x}[{x} > 0] = {n}", f"{x}[{self.key(x)}] += {n}", f"{x}.copy_({y})",
            f"{x}.fill_({n})", f"{x}.masked_fill_({x} > 0, {n})", f"{x}.index_fill_({d}, torch.tensor([0]), {n})", f"{x}.unsqueeze_(0)",
            f"{x}.index_add_({d}, torch.tensor([0]), {x}.narrow({d}, 0, 1).clone())",
            f"torch.{self.one_of(_BINARY[:4])}({x}, {y}, out={self.name()})",
            f"torch.exp({x}, out={y})", f"torch.sum({x}, {d}, out={y})",
            f"{x}.scatter_({d}, torch.zeros_like({x}, dtype=torch.int64), {n})",
            f"{x}.clamp_(-2, 2)", f"{x}.transpose_({d}, {self.dim(x)})",
        ])  # fmt: skip

    def placed(self, line: str) -> str:
        """The source of a step, with the block around it."""
        return line

    def step(self) -> None:
        makes = self.random.random() < 0.6
        name = f"v{len(self.program.names)}"
        line = self.placed(f"{name} = {self.value()}" if makes else self.write())
        try:
            exec(line, self.scope)
        except Exception:  # noqa: BLE001 - any refusal of eager drops the step
            if makes:
                return
            raise _SpoiledError from None  # the step may have written to tensors before it failed
        self.program.steps.append(line)
        if makes:
            self.program.names.append(name)


class _HistoryGrower(_Grower):
    """Arguments may require grad and have gaps or repeats in memory; programs contain no_grad blocks and graph breaks."""

    def start(self) -> str:
        text = super().start()
        text = self.one_of([text, text, f"{text}.repeat_interleave(2, -1)[..., ::2]", f"{text}[:1].expand(3, *[-1] * ({text}.ndim - 1))"])
        wants = self.one_of([True, False]) and eval(text, self.scope).dtype.is_floating_point
        return f"{text}.requires_grad_()" if wants else text

    def write(self) -> str:
        while "out=" in (line := super().write()):  # torch refuses out= with gradients
            pass
        return line

    def placed(self, line: str) -> str:
        in_shape = any(f".{name}_(" in line for name in ("t", "squeeze", "unsqueeze", "transpose"))  # the history would keep the old shape
        return f"with torch.no_grad(): {line}" if self.random.random() < 0.15 and not in_shape else line

    def step(self) -> None:
        if self.random.random() < 0.15:
            self.program.steps.append(self.one_of(_BREAKS))
        super().step()


class _SpoiledError(Exception):
    """Eager refused a write, which may have changed tensors before it failed."""


def grow(seed: int, most: int = 10, history: bool = False) -> Mixed:
    """The program of a seed, with at most `most` steps. history: with gradients, no_grad blocks and graph breaks."""
    grower = _HistoryGrower(seed) if history else _Grower(seed)
    for name in ("v0", "v1"):
        grower.program.starts.append(grower.start())
        grower.program.names.append(name)
    for name, value in zip(grower.program.names, grower.program.arguments(), strict=True):
        grower.scope[name] = value
    for _ in range(most):
        try:
            grower.step()
        except _SpoiledError:  # run the program so far again, on new arguments
            grower.scope |= dict(zip(grower.program.names, grower.program.arguments(), strict=False))
            for line in grower.program.steps:
                exec(line, grower.scope)
    return grower.program
