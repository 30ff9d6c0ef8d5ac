"""Limited-memory BFGS with an optional strong-Wolfe line search. Source: Nocedal & Wright, 2006, chapters 3 and 7."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import enable_grad
from eager.optable.table import OPS
from eager.optim._rule import check_decay, check_range
from eager.optim.optimizer import Optimizer

Objective = Callable[[Any, float, Any], tuple[float, Any]]


def _interpolate(x1: float, f1: float, g1: float, x2: float, f2: float, g2: float,
                 bounds: tuple[float, float] | None = None) -> float:  # fmt: skip
    """Minimiser of the cubic through two points with given slopes, clamped to `bounds`."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if square < 0:
        return (low + high) / 2
    d2 = square**0.5
    if x1 <= x2:
        minimum = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        minimum = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(minimum, low), high)


def _dot(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum())


def _real(t: Tensor) -> Tensor:
    """A complex tensor as pairs of real numbers over the same memory; a real tensor unchanged."""
    return OPS["view_as_real"](t) if t.is_complex() else t


def _strong_wolfe(evaluate: Objective, x: Tensor, t: float, d: Tensor, f: float, g: Tensor, slope: float, c1: float = 1e-4,
                  c2: float = 0.9, tolerance: float = 1e-9, max_iter: int = 25) -> tuple[float, Tensor, float, int]:  # fmt: skip
    """A step length that satisfies the strong Wolfe conditions. Returns: (loss, gradient, step length, evaluations)."""
    size = float(OPS["abs"](d).max())
    f_new, g_new = evaluate(x, t, d)
    calls, slope_new = 1, _dot(g_new, d)
    t_prev, f_prev, g_prev, slope_prev = 0.0, f, g, slope
    done, rounds = False, 0
    bracket: list[tuple[float, float, Tensor, float]] = []
    while rounds < max_iter:
        current, previous = (t, f_new, g_new, slope_new), (t_prev, f_prev, g_prev, slope_prev)
        if f_new > f + c1 * t * slope or (rounds > 1 and f_new >= f_prev) or slope_new >= 0:
            if abs(slope_new) <= -c2 * slope and f_new <= f + c1 * t * slope:
                bracket, done = [current], True
            else:
                bracket = [previous, current]
            break
        if abs(slope_new) <= -c2 * slope:
            bracket, done = [current], True
            break
        low, high = t + 0.01 * (t - t_prev), t * 10
        longer = _interpolate(t_prev, f_prev, slope_prev, t, f_new, slope_new, (low, high))
        t_prev, f_prev, g_prev, slope_prev = t, f_new, g_new, slope_new
        t = longer
        f_new, g_new = evaluate(x, t, d)
        calls, slope_new, rounds = calls + 1, _dot(g_new, d), rounds + 1
    if not bracket:
        bracket = [(0.0, f, g, slope), (t, f_new, g_new, slope_new)]
    stuck = False
    bracket.sort(key=lambda point: point[1])
    while not done and rounds < max_iter and abs(bracket[1][0] - bracket[0][0]) * size >= tolerance:
        t, stuck = _next_trial(bracket, stuck)
        f_new, g_new = evaluate(x, t, d)
        calls, slope_new, rounds = calls + 1, _dot(g_new, d), rounds + 1
        best = bracket[0]
        if f_new > f + c1 * t * slope or f_new >= best[1]:
            bracket[1] = (t, f_new, g_new, slope_new)
        else:
            if abs(slope_new) <= -c2 * slope:
                done = True
            elif slope_new * (bracket[1][0] - best[0]) >= 0:
                bracket[1] = best
            bracket[0] = (t, f_new, g_new, slope_new)
        bracket.sort(key=lambda point: point[1])
    best = bracket[0]
    return best[1], best[2], best[0], calls


def _next_trial(bracket: list[tuple[float, float, Tensor, float]], stuck: bool) -> tuple[float, bool]:
    """The next trial point within the bracket, moved away from its ends if progress stalls."""
    (a, fa, _, sa), (b, fb, _, sb) = bracket
    low, high = min(a, b), max(a, b)
    t = _interpolate(a, fa, sa, b, fb, sb)
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if stuck or t >= high or t <= low:
        return (high - margin if abs(t - high) < abs(t - low) else low + margin), False
    return t, True


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last `history_size` gradient differences. `step` requires a closure.

    line_search_fn: None (fixed lr) or "strong_wolfe". Raises: ValueError for several parameter groups.
    """

    def __init__(self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:  # fmt: skip
        check_range("learning rate", lr, lr >= 0.0)
        check_range("history_size", history_size, history_size >= 1)
        operator.index(history_size)  # raises TypeError for a number that is not an integer
        super().__init__(params, {"lr": lr, "max_iter": max_iter,
                                  "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                                  "history_size": history_size, "line_search_fn": line_search_fn})  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    def _gather_gradient(self) -> Tensor:
        parts: list[Any] = [p.grad if p.grad is not None else p.detach() * 0 for p in self._params]
        return OPS["cat"]([_real(g).reshape(-1) for g in parts], 0)

    def _move(self, t: float, d: Tensor) -> None:
        check_decay(t)
        offset = 0
        for p in self._params:
            target = _real(p)
            n = target.numel()
            OPS["add_"](target, d[offset : offset + n].view(tuple(target.shape)) * t)
            offset += n

    def step(self, closure: Callable[[], Any]) -> Any:
        """Iterate at most max_iter times. closure: clears the gradients, recomputes the loss and returns it."""
        before = _native.set_grad_enabled(False)
        try:
            return self._iterate(closure)
        finally:
            _native.set_grad_enabled(before)

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[float, Tensor]:
        with enable_grad():
            loss = float(closure())
        return loss, self._gather_gradient()

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            first_loss = closure()
        loss, g = float(first_loss), self._gather_gradient()
        calls = 1
        state["func_evals"] += 1
        if float(OPS["abs"](g).max()) <= group["tolerance_grad"]:
            return first_loss
        i = 0
        while i < group["max_iter"]:
            i += 1
            state["n_iter"] += 1
            d = self._direction(state, g, group["history_size"])
            t = min(1.0, 1.0 / float(OPS["abs"](g).sum())) * group["lr"] if state["n_iter"] == 1 else group["lr"]
            state["prev_flat_grad"], state["prev_loss"] = g.clone(), loss
            previous = loss
            slope = _dot(g, d)
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] == "strong_wolfe":
                loss, g, t, used = self._search(closure, t, d, loss, g, slope)
                self._move(t, d)
            else:
                self._move(t, d)
                used = 0
                if i != group["max_iter"]:
                    loss, g = self._evaluate(closure)
                    used = 1
            state["d"], state["t"] = d, t
            calls += used
            state["func_evals"] += used
            if calls >= group["max_eval"] or float(OPS["abs"](g).max()) <= group["tolerance_grad"]:
                break
            if float(OPS["abs"](d * t).max()) <= group["tolerance_change"] or abs(loss - previous) < group["tolerance_change"]:
                break
        return first_loss

    def _search(self, closure: Callable[[], Any], t: float, d: Tensor, loss: float, g: Tensor, slope: float) -> Any:
        start = [p.clone() for p in self._params]

        def evaluate(x: Any, step: float, direction: Tensor) -> tuple[float, Tensor]:
            self._move(step, direction)
            result = self._evaluate(closure)
            for p, saved in zip(self._params, start, strict=True):
                OPS["copy_"](p, saved)
            return result

        return _strong_wolfe(evaluate, d, t, d, loss, g, slope)

    def _direction(self, state: dict[str, Any], g: Tensor, history: int) -> Tensor:
        """-H g by the two-loop recursion over the stored differences."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1.0
            return -g
        y = g - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        ys = _dot(y, s)
        if ys > 1e-10:
            if len(state["old_dirs"]) == history:
                for name in ("old_dirs", "old_stps", "ro"):
                    state[name].pop(0)
            state["old_dirs"].append(y)
            state["old_stps"].append(s)
            state["ro"].append(1.0 / ys)
            state["H_diag"] = ys / _dot(y, y)
        q = -g
        memory = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
        coefficients = []
        for old_y, old_s, rho in reversed(memory):
            a = _dot(old_s, q) * rho
            coefficients.append(a)
            q = q - old_y * a
        r = q * state["H_diag"]
        for (old_y, old_s, rho), a in zip(memory, reversed(coefficients), strict=True):
            r = r + old_s * (a - _dot(old_y, r) * rho)
        return r
