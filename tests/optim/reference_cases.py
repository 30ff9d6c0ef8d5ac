"""Training runs that `tests/data/make_optim_reference.py` makes with torch and the tests with eager.

A case makes an optimizer (and a schedule) over three fixed parameters and takes 20 steps on a fixed function.
The tests compare the parameters after steps 1, 5 and 20, the learning rates, and the state with its layout.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Make = Callable[[Any, list[Any]], Any]
Schedule = Callable[[Any, Any], Any]
CASES: dict[str, dict[str, Any]] = {}
SHAPES = ((3, 4), (5,), (2, 3, 2))
KEPT = (1, 5, 20)


def parameters(torch: Any, dtype: str = "float64", shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[Any]:
    rng = np.random.default_rng(5)
    made = []
    for shape in shapes:
        value = rng.normal(size=shape)
        if dtype.startswith("complex"):
            value = value + 1j * rng.normal(size=shape)
        made.append(torch.nn.Parameter(torch.tensor(value.tolist(), dtype=getattr(torch, dtype))))
    return made


def objective(params: list[Any]) -> Any:
    """A smooth function that is not convex. Each element of the parameters has a separate minimum."""
    total: Any = 0
    for i, p in enumerate(params):
        size = (p * p.conj()).real if p.is_complex() else p * p
        total = total + (size * (0.5 + i) - size.sqrt().sin() * 0.7).sum()
        if p.ndim > 1:
            total = total + ((size.reshape(p.shape[0], -1).sqrt().sum(1) - 1) ** 2).sum() * 0.1
    return total


def plain(value: Any) -> Any:
    """Numbers and shapes instead of tensors."""
    if hasattr(value, "detach"):
        value = value.detach()
        return {"dtype": str(value.dtype), "shape": list(value.shape), "values": numbers(value)}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (int, float, bool, str, type(None))) else type(value).__name__


def numbers(t: Any) -> list[float]:
    t = t.detach()
    if t.is_complex():
        t = t.real.flatten().tolist() + t.imag.flatten().tolist()
        return [float(v) for v in t]
    return [float(v) for v in t.flatten().tolist()]


def run(torch: Any, name: str) -> dict[str, Any]:
    case = CASES[name]
    params = parameters(torch, case["dtype"], case["shapes"])
    optimizer = case["make"](torch, params)
    schedule = case["schedule"](torch, optimizer) if case["schedule"] else None
    kept, rates = [], []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = objective(params)
        loss.backward()
        return loss

    for i in range(1, case["steps"] + 1):
        if case["closure"]:
            optimizer.step(closure)
        else:
            loss = closure()
            optimizer.step()
        if schedule is not None:
            schedule.step(*([float(loss)] if case["metric"] else []))
            group = optimizer.param_groups[0]
            momentum = group.get("momentum", group.get("betas", (0.0,))[0] if "betas" in group else 0.0)
            rates.append([float(g["lr"]) for g in optimizer.param_groups] + [float(momentum)])
        if i in KEPT:
            kept.append([numbers(p) for p in params])
    state = optimizer.state_dict()
    result = {"params": kept, "rates": rates, "text": repr(optimizer), "groups": plain(state["param_groups"])}
    if not case["closure"]:
        result["state"] = plain(state["state"])
    if schedule is not None:
        result["schedule"] = plain({k: v for k, v in schedule.state_dict().items() if not k.startswith("_") or k == "_last_lr"})
    return result


def add(name: str, make: Make, schedule: Schedule | None = None, *, dtype: str = "float64", closure: bool = False, steps: int = 20,
        metric: bool = False, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> None:  # fmt: skip
    if name in CASES:
        raise ValueError(f"case {name} exists")
    CASES[name] = {"make": make, "schedule": schedule, "dtype": dtype, "closure": closure, "steps": steps, "metric": metric,
                   "shapes": shapes}  # fmt: skip


def _with(kind: str, **settings: Any) -> Make:
    return lambda torch, params: getattr(torch.optim, kind)(params, **settings)


_FLAGS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{"lr": 0.05}, {"lr": 0.05, "momentum": 0.9}, {"lr": 0.05, "momentum": 0.9, "nesterov": True},
            {"lr": 0.05, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.1}, {"lr": 0.01, "maximize": True},
            {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True, "foreach": True},
            {"lr": 0.05, "momentum": 0.9, "fused": True, "maximize": True}, {"lr": 0.05, "weight_decay": 0.2, "foreach": False}],
    "Adam": [{"lr": 0.05}, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-4}, {"weight_decay": 0.3}, {"amsgrad": True, "lr": 0.1},
             {"maximize": True}, {"lr": 0.05, "decoupled_weight_decay": True, "weight_decay": 0.2},
             {"lr": 0.05, "foreach": True, "amsgrad": True, "weight_decay": 0.1}, {"lr": 0.05, "fused": True},
             {"lr": 0.05, "fused": True, "amsgrad": True, "maximize": True}],
    "AdamW": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.4, "amsgrad": True}, {"lr": 0.05, "maximize": True, "foreach": False}],
    "RMSprop": [{}, {"centered": True}, {"momentum": 0.9, "weight_decay": 0.1}, {"centered": True, "momentum": 0.5, "maximize": True},
                {"alpha": 0.9, "eps": 1e-3, "foreach": True}],
    "Adagrad": [{"lr": 0.1}, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}, {"initial_accumulator_value": 0.5, "maximize": True},
                {"lr": 0.1, "fused": True}],
    "Adadelta": [{}, {"rho": 0.8, "weight_decay": 0.1, "eps": 1e-4}, {"lr": 0.5, "maximize": True}],
    "Adamax": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9)}, {"maximize": True}],
    "NAdam": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.01},
              {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}, {"maximize": True}],
    "RAdam": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.1}, {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
              {"maximize": True, "betas": (0.8, 0.9)}],
    "ASGD": [{}, {"lr": 0.05, "t0": 5, "lambd": 0.01, "weight_decay": 0.1}, {"maximize": True, "alpha": 0.5, "lr": 0.02}],
    "Rprop": [{}, {"etas": (0.4, 1.5), "step_sizes": (1e-4, 0.1)}, {"maximize": True, "lr": 0.001}],
    "Adafactor": [{}, {"lr": 0.05, "weight_decay": 0.1}, {"beta2_decay": -0.5, "eps": (1e-3, 1e-2), "d": 1.5, "maximize": True}],
}  # fmt: skip
for _kind, _all in _FLAGS.items():
    for _i, _settings in enumerate(_all):
        add(f"{_kind}.{_i}", _with(_kind, **_settings))
for _kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"):
    add(f"{_kind}.complex", _with(_kind, lr=0.02), dtype="complex128", shapes=((2, 3), (4,)))
    add(f"{_kind}.tensor_lr", lambda t, p, k=_kind: getattr(t.optim, k)(p, lr=t.tensor(0.02)))
    add(f"{_kind}.float32", _with(_kind, lr=0.02), dtype="float32")
add("SGD.momentum_complex", _with("SGD", lr=0.02, momentum=0.9, nesterov=True), dtype="complex128", shapes=((2, 3), (4,)))
for _i, _more in enumerate(({}, {"nesterov": False, "weight_decay": 0.0}, {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3})):
    add(f"Muon.{_i}", lambda t, p, m=_more: t.optim.Muon(p, lr=0.02, **m), shapes=((3, 4), (6, 2)))
for _i, _more in enumerate(({"lr": 0.3, "max_iter": 4}, {"max_iter": 6, "line_search_fn": "strong_wolfe"},
                            {"lr": 0.2, "history_size": 2, "max_iter": 8}, {"max_iter": 10, "line_search_fn": "strong_wolfe",
                                                                             "tolerance_grad": 1e-3, "max_eval": 7})):  # fmt: skip
    add(f"LBFGS.{_i}", _with("LBFGS", **_more), closure=True, steps=5)
add("LBFGS.complex", _with("LBFGS", lr=0.3, max_iter=3), closure=True, steps=5, dtype="complex128", shapes=((2, 3), (4,)))
add("Adam.closure", _with("Adam", lr=0.05), closure=True)
add("groups", lambda t, p: t.optim.AdamW([{"params": p[:1], "lr": 0.1}, {"params": p[1:2], "weight_decay": 0.0}, {"params": p[2:]}],
                                         lr=0.02))  # fmt: skip
add("named", lambda t, p: t.optim.SGD([(f"p{i}", q) for i, q in enumerate(p)], lr=0.02, momentum=0.5))


def _added(optimizer: Any, p: list[Any]) -> Any:
    optimizer.add_param_group({"params": p[2], "lr": 0.2})
    return optimizer


add("added_group", lambda t, p: _added(t.optim.Adam(p[:2], lr=0.05), p))

_SCHEDULES: dict[str, Schedule] = {
    "StepLR": lambda s, o: s.StepLR(o, 4, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 3, 9], 0.3),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 6),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.8, 7),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 9, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 6, 0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.002),
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.1, 0.2], 20),
    "OneCycleLR_linear": lambda s, o: s.OneCycleLR(o, 0.1, epochs=4, steps_per_epoch=5, anneal_strategy="linear", three_phase=True),
    "OneCycleLR_still": lambda s, o: s.OneCycleLR(o, 0.1, 21, pct_start=0.5, cycle_momentum=False, div_factor=10, final_div_factor=5),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4),
    "CyclicLR_triangular2": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 5, mode="triangular2", cycle_momentum=False),
    "CyclicLR_exp": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 3, mode="exp_range", gamma=0.95),
    "CyclicLR_own": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 8), s.ExponentialLR(o, 0.9)], [4, 12]),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 5)]),
    "Sequential_of_chained": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.5, 3), s.LinearLR(o, 1.0, 0.1, 10)], [5]),
}  # fmt: skip
for _name, _make in _SCHEDULES.items():
    add(f"schedule.{_name}", lambda t, p: t.optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.05}], lr=0.02, momentum=0.5),
        lambda t, o, m=_make: m(t.optim.lr_scheduler, o), shapes=((2, 2), (3,)))  # fmt: skip
for _i, _more in enumerate(({"patience": 1}, {"mode": "max", "factor": 0.5, "patience": 2, "min_lr": 0.001, "cooldown": 1},
                            {"threshold": 0.5, "threshold_mode": "abs", "patience": 0, "min_lr": [0.001, 0.01]})):  # fmt: skip
    add(f"schedule.ReduceLROnPlateau.{_i}", lambda t, p: t.optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.05}], lr=0.02),
        lambda t, o, m=_more: t.optim.lr_scheduler.ReduceLROnPlateau(o, **m), metric=True, shapes=((2, 2), (3,)))  # fmt: skip
for _anneal in ("cos", "linear"):
    add(f"schedule.SWALR_{_anneal}", lambda t, p: t.optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.05}], lr=0.02),
        lambda t, o, a=_anneal: t.optim.swa_utils.SWALR(o, [0.1, 0.3], 6, a), shapes=((2, 2), (3,)))  # fmt: skip
add("schedule.OneCycle_adam", _with("Adam", lr=0.02), lambda t, o: t.optim.lr_scheduler.OneCycleLR(o, 0.1, 20), shapes=((2, 2),))
add("schedule.tensor_lr", lambda t, p: t.optim.Adam(p, lr=t.tensor(0.02)), lambda t, o: t.optim.lr_scheduler.ExponentialLR(o, 0.9),
    shapes=((2, 2),))  # fmt: skip


def _resumed(make: Any) -> Schedule:
    """The schedule of a run that stopped after five epochs, constructed again on the groups of the fifth epoch."""

    def schedule(t: Any, o: Any) -> Any:
        first = make(t.optim.lr_scheduler, o, -1)
        for _ in range(5):
            o.step()
            first.step()
        return make(t.optim.lr_scheduler, o, first.last_epoch)

    return schedule


for _name, _make in {
    "StepLR": lambda s, o, e: s.StepLR(o, 4, 0.5, last_epoch=e), "ExponentialLR": lambda s, o, e: s.ExponentialLR(o, 0.9, last_epoch=e),
    "LinearLR": lambda s, o, e: s.LinearLR(o, 0.1, 0.8, 12, last_epoch=e),
    "LambdaLR": lambda s, o, e: s.LambdaLR(o, lambda i: 0.9**i, last_epoch=e),
    "PolynomialLR": lambda s, o, e: s.PolynomialLR(o, 30, 2.0, last_epoch=e),
    "ConstantLR": lambda s, o, e: s.ConstantLR(o, 0.5, 8, last_epoch=e),
    "CosineAnnealingLR": lambda s, o, e: s.CosineAnnealingLR(o, 9, 0.001, last_epoch=e),
    "MultiplicativeLR": lambda s, o, e: s.MultiplicativeLR(o, lambda i: 0.95, last_epoch=e),
    "MultiStepLR": lambda s, o, e: s.MultiStepLR(o, [3, 7], 0.3, last_epoch=e),
}.items():  # fmt: skip
    add(f"resumed.{_name}", lambda t, p: t.optim.SGD(p, lr=0.02, momentum=0.5), _resumed(_make), shapes=((2, 2),))
