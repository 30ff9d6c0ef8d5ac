"""Recurrent layers as functions of their weights, and torch's functions lstm, gru, rnn_tanh and rnn_relu.

The products with the input are computed for all time steps at once; all steps of a layer are then one op. Packed sequences,
projections and halves run step by step: one product with the state and one fused op for the gates.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eager.base.spec import normalize_dim
from eager.nn.functional.dropouts import dropout
from eager.optable.table import OPS

Tensor = Any
State = tuple[Any, ...]
Step = Callable[[Any, State], State]


class Weights(NamedTuple):
    """The weights of one layer in one direction."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None = None
    bias_hh: Tensor | None = None
    weight_hr: Tensor | None = None


def make_step(mode: str, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> Step:
    """A function of (product with the input at one time step, state) that returns the next state."""
    if mode == "LSTM":

        def lstm(gx: Tensor, state: State) -> State:
            h, c = OPS["lstm_gates"](gx + OPS["linear"](state[0], w_hh, b_hh), state[1])
            return (h if w_hr is None else OPS["linear"](h, w_hr, None)), c

        return lstm
    if mode == "GRU":
        return lambda gx, state: (OPS["gru_gates"](gx, OPS["linear"](state[0], w_hh, b_hh), state[0]),)
    activation = OPS["tanh" if mode == "RNN_TANH" else "relu"]
    return lambda gx, state: (activation(gx + OPS["linear"](state[0], w_hh, b_hh)),)


def _run(step: Step, inputs: Sequence[Tensor], initial: State, reverse: bool) -> tuple[list[Tensor], State]:
    """Outputs of all time steps and the last state. inputs[t]: (n_t, *), n_t non-increasing; initial: (n_0, h) each.

    A sequence that ends leaves the batch; in reverse, a sequence enters the batch at its last step.
    """
    outputs: list[Tensor] = []
    if reverse:
        state = tuple(s[: inputs[-1].shape[0]] for s in initial)
        for x in reversed(inputs):
            batch, next_batch = state[0].shape[0], x.shape[0]
            if next_batch > batch:
                state = tuple(OPS["cat"]([s, i[batch:next_batch]], 0) for s, i in zip(state, initial, strict=True))
            state = step(x, state)
            outputs.append(state[0])
        return outputs[::-1], state
    state, finished = initial, []
    for x in inputs:
        batch, next_batch = state[0].shape[0], x.shape[0]
        if next_batch < batch:
            finished.append(tuple(s[next_batch:] for s in state))
            state = tuple(s[:next_batch] for s in state)
        state = step(x, state)
        outputs.append(state[0])
    if finished:
        finished.append(state)
        state = tuple(OPS["cat"](list(parts), 0) for parts in zip(*reversed(finished), strict=True))
    return outputs, state


def _run_layer(mode: str, x: Tensor, batch_sizes: list[int] | None, initial: State, weights: Weights,
               reverse: bool) -> tuple[Tensor, State]:  # fmt: skip
    gx = OPS["linear"](x, weights.weight_ih, weights.bias_ih)
    if mode == "LSTM" and gx.dtype is not initial[0].dtype:  # under autocast the whole layer runs in the low precision, as in torch
        initial = tuple(s.to(gx.dtype) for s in initial)
    if batch_sizes is None and _is_one_op(gx, initial, weights):
        return _as_one_op(mode, gx, initial, weights, reverse)
    step = make_step(mode, weights.weight_hh, weights.bias_hh, weights.weight_hr)
    if batch_sizes is None:
        outputs, state = _run(step, [gx[t] for t in range(gx.shape[0])], initial, reverse)
        return OPS["stack"](outputs, 0), state
    starts = [sum(batch_sizes[:t]) for t in range(len(batch_sizes))]
    outputs, state = _run(step, [gx[s : s + b] for s, b in zip(starts, batch_sizes, strict=True)], initial, reverse)
    return OPS["cat"](outputs, 0), state


def _is_one_op(gx: Tensor, initial: State, weights: Weights) -> bool:
    """Whether all steps can run in one op, which rounds as the ops of a step do: not for halves, which round more often."""
    same = all(x.dtype is gx.dtype for x in (*initial, weights.weight_hh))
    return weights.weight_hr is None and gx.dtype.itemsize >= 4 and same and gx.ndim == 3 and gx.shape[1] == initial[0].shape[0]


def _as_one_op(mode: str, gx: Tensor, initial: State, weights: Weights, reverse: bool) -> tuple[Tensor, State]:
    last = 0 if reverse else gx.shape[0] - 1
    recurrent = (weights.weight_hh, weights.bias_hh)
    if mode == "LSTM":
        y, c, _ = OPS["lstm_layer"](gx, *initial, *recurrent, reverse)
        return y, (OPS["select"](y, 0, last), OPS["select"](c, 0, last))
    if mode == "GRU":
        y = OPS["gru_layer"](gx, *initial, *recurrent, reverse)[0]
    else:
        # The gradient reads the states; the caller may write to the result, as in torch.
        y = OPS["clone"](OPS["rnn_layer"](gx, *initial, *recurrent, "tanh" if mode == "RNN_TANH" else "relu", reverse), None)
    return y, (OPS["select"](y, 0, last),)


def run_layers(mode: str, x: Tensor, batch_sizes: list[int] | None, initial: State, weights: Sequence[Weights], rate: float,
               bidirectional: bool) -> tuple[Tensor, State]:  # fmt: skip
    """Outputs of the last layer and the last states of all layers.

    x: (t, n, *), or packed (rows, *) with the number of rows of each step. initial: (layers * directions, n, *) each.
    weights: by layer, then direction. rate: of the dropout between layers.
    """
    directions = 2 if bidirectional else 1
    last: list[State] = []
    for first in range(0, len(weights), directions):
        results = []
        for index in range(first, first + directions):
            y, state = _run_layer(mode, x, batch_sizes, tuple(s[index] for s in initial), weights[index], index > first)
            results.append(y)
            last.append(state)
        x = results[0] if directions == 1 else OPS["cat"](results, x.ndim - 1)
        if rate and first + directions < len(weights):
            x = dropout(x, rate, True)
    return x, tuple(OPS["stack"](list(parts), 0) for parts in zip(*last, strict=True))


# ---- torch.lstm, gru, rnn_tanh, rnn_relu ----

_PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _gathered(params: Sequence[Tensor], has_biases: bool, count: int, projected: bool) -> list[Weights]:
    """The flat parameter list of torch's functions, grouped by layer and direction.

    Raises: RuntimeError for another number of parameters than `count` layers and directions need.
    """
    each = 2 + 2 * has_biases + projected
    if len(params) != each * count:
        raise RuntimeError(f"got an incorrect number of RNN parameters: {len(params)}; allowed here: {each * count}, {each} for each "
                           "layer and direction")  # fmt: skip
    groups = [params[i : i + each] for i in range(0, len(params), each)]
    return [Weights(g[0], g[1], g[2] if has_biases else None, g[3] if has_biases else None, g[-1] if projected else None) for g in groups]


def _bound(name: str, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name. Raises: TypeError unless they fit the padded or the packed form."""
    packed = "data" in kwargs or "batch_sizes" in kwargs or (len(args) > 1 and _is_sizes(args[1]) and len(args) + len(kwargs) == 9
                                                             and (len(args) < 4 or not isinstance(args[3], bool)))  # fmt: skip
    given = dict(zip(_PACKED if packed else _PADDED, args, strict=False)) | kwargs
    hx = given.get("hx")
    fits = set(given) == set(_PACKED if packed else _PADDED) and len(args) + len(kwargs) == 9
    if not fits or isinstance(hx, (tuple, list)) != (mode == "LSTM"):
        kinds = ", ".join(type(a).__name__ for a in (*args, *kwargs.values()))
        state = "tuple of Tensors" if mode == "LSTM" else "Tensor"
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds}), but expected ({', '.join(_PADDED)}) or "
                        f"({', '.join(_PACKED)}) with a {state} hx")
    return given


def _is_sizes(value: Any) -> bool:
    return hasattr(value, "stride") and value.ndim == 1


def _layers(name: str, mode: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        given = _bound(name, mode, args, kwargs)
        hx, count = given["hx"], given["num_layers"] * (2 if given["bidirectional"] else 1)
        state: State = tuple(hx) if mode == "LSTM" else (hx,)
        if mode == "LSTM" and len(state) != 2:
            raise RuntimeError("lstm expects two hidden states")
        projected = mode == "LSTM" and state[0].shape[-1] != state[1].shape[-1]
        weights = _gathered(given["params"], given["has_biases"], count, projected)
        x = given["data"] if "data" in given else given["input"]
        rate = given["dropout"] if given["train"] else 0.0
        sizes = [int(n) for n in given["batch_sizes"].tolist()] if "batch_sizes" in given else None
        if sizes is None:
            normalize_dim(2, x.ndim)
        swap = bool(given.get("batch_first"))
        x = x.transpose(0, 1) if swap else x
        if x.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        y, last = run_layers(mode, x, sizes, state, weights, rate, given["bidirectional"])
        return (y.transpose(0, 1) if swap else y), *last

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"""Outputs and last states of the layers of `nn.{mode.split("_")[0]}`, by their weights.

    ({", ".join(_PADDED)}), or for packed sequences ({", ".join(_PACKED)}); params: all weights in the order of
    `nn.Module.parameters`. Raises: TypeError for other arguments, RuntimeError for a wrong number of params.
    """
    return run


FUNCTIONS: dict[str, Any] = {
    "lstm": _layers("lstm", "LSTM"), "gru": _layers("gru", "GRU"), "rnn_tanh": _layers("rnn_tanh", "RNN_TANH"),
    "rnn_relu": _layers("rnn_relu", "RNN_RELU"),
}  # fmt: skip
