"""Writes distributions_reference.json: what torch computes for the cases of tests/distributions/cases.py.

Run with an interpreter that has torch, from the repository's root: `python tests/data/make_distributions_reference.py`.
"""

from __future__ import annotations

import json
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def plain(value: Any, torch: Any) -> Any:
    """As JSON: tensors as shape and values, everything else as its text."""
    if isinstance(value, torch.Tensor):
        values = [repr(v) for v in value.detach().double().flatten().tolist()]
        return {"shape": list(value.shape), "dtype": str(value.dtype), "values": values}
    return repr(value)


def attempt(call: Any, torch: Any) -> Any:
    try:
        return plain(call(), torch)
    except Exception as error:  # noqa: BLE001 - the class is the result
        return {"error": type(error).__name__, "text": str(error)}


def of_distribution(d: Any, x: Any, cases: Any, places: Any, torch: Any) -> dict[str, Any]:
    found = {name: attempt(lambda name=name: getattr(d, name), torch) for name in cases["ATTRIBUTES"]}
    found["log_prob"] = attempt(lambda: d.log_prob(x), torch)
    found["cdf"] = attempt(lambda: d.cdf(x), torch)
    at = places.expand(d.batch_shape) if len(d.batch_shape) and d.batch_shape[-1] == 2 else places[0]
    found["icdf"] = attempt(lambda: d.icdf(at), torch)
    found["entropy"] = attempt(d.entropy, torch)
    found["repr"] = repr(d)
    found["expand"] = attempt(lambda: d.expand((3, *d.batch_shape)).log_prob(x), torch)
    found["enumerate_support"] = attempt(d.enumerate_support, torch)
    return found


def collect(torch: Any) -> dict[str, Any]:
    """Everything that is compared, computed with `torch` (either library)."""
    cases = runpy.run_path(str(HERE.parent / "distributions" / "cases.py"))
    names = {"D": torch.distributions, "T": lambda v: torch.tensor(v, dtype=torch.float64), "L": torch.tensor}

    def value(text: str) -> Any:
        return eval(text, dict(names))

    kl = {name: value(text) for name, text in cases["KL"].items()}
    found: dict[str, Any] = {"distributions": {}, "kl": {}, "transforms": {}, "errors": {}}
    for name, (expression, x) in cases["DISTRIBUTIONS"].items():
        found["distributions"][name] = of_distribution(value(expression), value(x), cases, value(cases["PLACES"]), torch)
    for p in kl:
        for q in kl:
            found["kl"][f"{p}, {q}"] = attempt(lambda p=p, q=q: torch.distributions.kl_divergence(kl[p], kl[q]), torch)
    for expression, x in {**cases["TRANSFORMS"], **cases["MAPS"]}.items():
        t, at = value(expression), value(x)
        y = t(at)
        found["transforms"][expression] = {
            "y": plain(y, torch), "x": plain(t.inv(y), torch), "domain": repr(t.domain), "codomain": repr(t.codomain),
            "log_det": attempt(lambda t=t, at=at, y=y: t.log_abs_det_jacobian(at, y), torch),
            "forward_shape": attempt(lambda t=t, at=at: t.forward_shape(at.shape), torch),
        }  # fmt: skip
    for expression in cases["ERRORS"]:
        found["errors"][expression] = attempt(lambda e=expression: value(e), torch)
    return found


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    data = {"made_by": f"torch {torch.__version__}", **collect(torch)}
    (HERE / "distributions_reference.json").write_text(json.dumps(data, separators=(",", ":"), sort_keys=True) + "\n")
    count = sum(len(part) for part in data.values() if isinstance(part, dict))
    print(f"{count} cases with torch {torch.__version__}", file=sys.stderr)
