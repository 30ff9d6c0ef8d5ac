"""The roles of the inputs and outputs of an exported graph: `ExportGraphSignature` and its parts, under torch's names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from eager.base.records import dataclass


class InputKind(Enum):
    """The source of a placeholder's value."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()


class OutputKind(Enum):
    """The destination of an output."""

    USER_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    USER_INPUT_MUTATION = auto()


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A node whose value is a tensor, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """A value that is not a tensor: equal at every call."""

    name: str
    value: Any


Argument = TensorArgument | ConstantArgument


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input. target: the parameter's or buffer's name in the module. persistent: whether a buffer is saved."""

    kind: InputKind
    arg: Argument
    target: str | None = None
    persistent: bool | None = None


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One output. target: the parameter, buffer or input that takes the value, None for an output to the caller."""

    kind: OutputKind
    arg: Argument
    target: str | None = None


def _in_signature(arg: Argument) -> Any:
    return arg.name if isinstance(arg, TensorArgument) else arg.value


@dataclass(frozen=True, slots=True)
class ExportGraphSignature:
    """input_specs: of all inputs, parameters and buffers first. output_specs: new values first, then outputs to the caller."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind is kind and s.target is not None)

    def _by_name(self, kind: InputKind) -> Mapping[str, str]:
        return MappingProxyType({_in_signature(s.arg): s.target for s in self.input_specs if s.kind is kind and s.target is not None})

    def _written(self, kind: OutputKind) -> Mapping[str, str]:
        return MappingProxyType({_in_signature(s.arg): s.target for s in self.output_specs if s.kind is kind and s.target is not None})

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind is InputKind.BUFFER and s.persistent is False and s.target is not None)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        return tuple(_in_signature(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        return tuple(_in_signature(s.arg) for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        return self._by_name(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        return self._by_name(InputKind.BUFFER)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        return self._written(OutputKind.USER_INPUT_MUTATION)
