"""Recurrent layers and cells: their parameters, and the checks of input and state."""
from __future__ import annotations

import math
import warnings
from typing import Any

from eager._tensor.tensor import Tensor
from eager.amp.autocast_mode import is_autocast_enabled
from eager.nn import init
from eager.nn.functional import recurrent
from eager.nn.functional.recurrent import State
from eager.nn.module import Module
from eager.nn.modules.utils import parameter
from eager.nn.utils.rnn import PackedSequence
from eager.optable.table import OPS

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Stacked recurrent layers of mode LSTM, GRU, RNN_TANH or RNN_RELU, in one or both directions.

    Raises: ValueError, TypeError for settings outside their ranges.
    """

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        _check_settings(hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if proj_size > 0 and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        directions = 2 if bidirectional else 1
        gates = _GATES[mode] * hidden_size
        state_size = proj_size or hidden_size
        for layer in range(num_layers):
            for direction in range(directions):
                width = input_size if layer == 0 else state_size * directions
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, width), "weight_hh": (gates, state_size)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name + suffix, parameter(shape, device, dtype))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every parameter uniformly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: kernels use the weights where they are."""

    def __getstate__(self) -> dict[str, Any]:
        """The state with the flat list of weights, which torch keeps as an attribute."""
        names = [name for names in self._all_weights for name in names]
        return {**super().__getstate__(), "_flat_weights_names": names, "_flat_weights": self._flat_weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({k: v for k, v in state.items() if not k.startswith("_flat_weight")})

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        return [w for weights in self.all_weights for w in weights]

    def _stack(self, x: Tensor, batch_sizes: list[int] | None, initial: State) -> tuple[Tensor, State]:
        """Run all layers. x: (t, n, *) or packed (rows, *); initial: (layers * directions, n, *) each."""
        weights = [recurrent.Weights(**{name.split("_l")[0]: getattr(self, name) for name in names}) for names in self._all_weights]
        rate = self.dropout if self.training else 0.0
        return recurrent.run_layers(self.mode, x, batch_sizes, initial, weights, rate, self.bidirectional)

    def _zero_state(self, n: int, like: Tensor) -> State:
        layers = self.num_layers * (2 if self.bidirectional else 1)
        h = like.new_zeros((layers, n, self.proj_size or self.hidden_size))
        return (h, like.new_zeros((layers, n, self.hidden_size))) if self.mode == "LSTM" else (h,)

    def _check_state(self, state: State, n: int, batched: bool) -> None:
        layers = self.num_layers * (2 if self.bidirectional else 1)
        for i, s in enumerate(state):
            width = self.hidden_size if i else self.proj_size or self.hidden_size
            if tuple(s.shape) != (layers, n, width):
                which = "hidden[0]" if self.mode == "LSTM" and i == 0 else f"hidden[{i}]" if self.mode == "LSTM" else "hidden"
                expected = (layers, n, width) if batched else (layers, width)
                got = list(s.shape) if batched else [s.shape[0], *s.shape[2:]]
                raise RuntimeError(f"Expected {which} size {expected}, got {got}")

    def _check_input(self, x: Tensor) -> None:
        """Check x (t, n, input_size).

        Raises: ValueError for another dtype than the weights'; RuntimeError for t = 0.
        """
        weight = self._flat_weights[0]
        if x.dtype is not weight.dtype and not is_autocast_enabled(x.device.type):
            raise ValueError(f"RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                             f"input.to({weight.dtype}), or convert model: model.to({x.dtype})")  # fmt: skip
        if x.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")

    def _forward(self, input: Any, state: State | None) -> tuple[Any, State]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, state)
        if input.ndim not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        batched = input.ndim == 3
        if state is not None and any(s.ndim != input.ndim for s in state):
            argument_names = "hx" if self.mode != "LSTM" else "hx and cx"
            raise RuntimeError(f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, {argument_names} should also be "
                               f"{input.ndim}-D but got {_ranks(state)}")  # fmt: skip
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        if x.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}")
        self._check_input(x)
        n = x.shape[1]
        if state is None:
            state = self._zero_state(n, x)
        elif not batched:
            state = tuple(s.unsqueeze(1) for s in state)
        self._check_state(state, n, batched)
        y, last = self._stack(x, None, state)
        if not batched:
            return y.squeeze(1), tuple(s.squeeze(1) for s in last)
        return (y.transpose(0, 1) if self.batch_first else y), last

    def _forward_packed(self, packed: PackedSequence, state: State | None) -> tuple[PackedSequence, State]:
        batch_sizes = [int(b) for b in packed.batch_sizes.tolist()]
        self._check_input(packed.data)
        if state is None:
            state = self._zero_state(batch_sizes[0], packed.data)
        elif packed.sorted_indices is not None:
            state = tuple(OPS["index_select"](s, 1, packed.sorted_indices) for s in state)
        self._check_state(state, batch_sizes[0], True)
        y, last = self._stack(packed.data, batch_sizes, state)
        if packed.unsorted_indices is not None:
            last = tuple(OPS["index_select"](s, 1, packed.unsorted_indices) for s in last)
        return PackedSequence(y, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices), last

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        return text if self.bidirectional is False else text + f", bidirectional={self.bidirectional}"


def _ranks(state: State) -> str:
    """The ranks of a state's tensors, as torch's error texts print them."""
    return f"({', '.join(f'{s.ndim}-D' for s in state)}) tensors" if len(state) > 1 else f"{state[0].ndim}-D tensor"


def _check_settings(hidden_size: Any, num_layers: int, bias: Any, batch_first: Any, dropout: Any, proj_size: int) -> None:
    for name, flag in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
    if dropout > 0 and num_layers == 1:
        warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                      f"greater than 1, but got dropout={dropout} and num_layers={num_layers}", stacklevel=4)  # fmt: skip
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """Elman recurrence h' = tanh(W x + b + U h + c), or relu.

    input: (t, n, input_size), (n, t, input_size) with batch_first, (t, input_size) or packed.
    Returns: outputs (t, n, directions * hidden_size) and the last state (layers * directions, n, hidden_size).
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(modes[nonlinearity], input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                         device, dtype)  # fmt: skip
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        y, state = self._forward(input, None if hx is None else (hx,))
        return y, state[0]


class GRU(RNNBase):
    """Gated recurrent units.

    input: (t, n, input_size), (n, t, input_size) with batch_first, (t, input_size) or packed.
    Returns: outputs (t, n, directions * hidden_size) and the last state (layers * directions, n, hidden_size).
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        y, state = self._forward(input, None if hx is None else (hx,))
        return y, state[0]


class LSTM(RNNBase):
    """Long short-term memory.

    input: (t, n, input_size), (n, t, input_size) with batch_first, (t, input_size) or packed.
    Returns: outputs (t, n, directions * hidden_size) and (h, c) of the last step, (layers * directions, n, *) each.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
                         device, dtype)  # fmt: skip

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, ...]]:
        return self._forward(input, None if hx is None else tuple(hx))


# ---- single steps ----


class RNNCellBase(Module):
    """Parameters of one recurrent step: weight_ih, weight_hh, bias_ih, bias_hh."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = parameter((rows, input_size), device, dtype)
        self.weight_hh = parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every parameter uniformly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _advance(self, mode: str, input: Tensor, state: State | None) -> State:
        cell = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{cell}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for s in state or ():
            if s.ndim not in (1, 2):
                raise ValueError(f"{cell}: Expected hidden to be 1D or 2D, got {s.ndim}D instead")
        single = input.ndim == 1
        x = input.unsqueeze(0) if single else input
        if state is None:
            zero = x.new_zeros((x.shape[0], self.hidden_size))
            state = (zero, zero) if mode == "LSTM" else (zero,)
        elif single:
            state = tuple(s.unsqueeze(0) for s in state)
        if x.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}")
        for i, s in enumerate(state):
            if s.shape[0] != x.shape[0]:
                raise RuntimeError(f"Input batch size {x.shape[0]} doesn't match hidden{i} batch size {s.shape[0]}")
            if s.shape[1] != self.hidden_size:
                raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {s.shape[1]}, expected {self.hidden_size}")
        gx = OPS["linear"](x, self.weight_ih, self.bias_ih)
        result = recurrent.make_step(mode, self.weight_hh, self.bias_hh, None)(gx, state)
        return tuple(s.squeeze(0) for s in result) if single else result

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else text + f", nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of an RNN. (n, input_size), (n, hidden_size) -> (n, hidden_size)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if self.nonlinearity not in modes:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._advance(modes[self.nonlinearity], input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM. (n, input_size), (h, c) -> (h, c)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> State:
        return self._advance("LSTM", input, None if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One step of a GRU. (n, input_size), (n, hidden_size) -> (n, hidden_size)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._advance("GRU", input, None if hx is None else (hx,))[0]
