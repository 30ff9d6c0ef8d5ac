"""Run the models of `tests.libraries.cases` and compare them with torch.

    python -m tests.libraries [--compiled] [--seconds N] [NAME ...]     with this project, against the stored outcomes
    python -m tests.libraries --record [NAME ...]                       with torch: stores the outcomes

The libraries are installed beside torch or framejit without their dependencies (`pip install --no-deps --target DIR ...`,
and DIR on PYTHONPATH). A model whose library is absent is named and left out. Everything is computed in float64, from weights
and inputs of fixed seeds, in eval mode: results and all gradients must agree to a part in a million.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.libraries import torchvision_stand_in
from tests.libraries.cases import CASES

STORED = Path(__file__).parent.parent / "data" / "libraries.json"
TOLERANCE = 1e-6


def outcome(torch: Any, name: str, compiled: bool) -> dict[str, list[float]]:
    """Sums and random projections of a model's results, of its input gradients and of its weight gradients."""
    # transformers and diffusers need no torchvision, and use more of it than the stand-in has if they find it
    torchvision_stand_in.present(not name.startswith(("transformers/", "diffusers/")))
    torch.manual_seed(0)
    model, arrays = CASES[name](torch)
    model.double().eval()
    _set_weights(torch, model)
    inputs = [torch.from_numpy(np.array(a)) for a in arrays]
    wanting = [t.requires_grad_() for t in inputs if t.is_floating_point()]
    results = _tensors(torch, (torch.compile(model) if compiled else model)(*inputs))
    sum((r * r).mean() + r.mean() for r in results if r.requires_grad).backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return {"results": _digest(results), "inputs": _digest([t.grad for t in wanting]), "weights": _digest(grads)}


def _set_weights(torch: Any, model: Any) -> None:
    """Set weights of a usual scale. numpy draws them in the order of their names, so that every library gets the same."""
    with torch.no_grad():
        for i, (name, p) in enumerate(sorted(model.named_parameters())):
            draw = np.random.RandomState(i).randn(*p.shape)
            if p.ndim > 1:
                draw = draw / np.sqrt(np.prod(p.shape[1:]))
            else:
                draw = 0.1 * draw + (1.0 if name.endswith("weight") else 0.0)
            p.copy_(torch.from_numpy(np.asarray(draw)))


def _tensors(torch: Any, found: Any) -> list[Any]:
    if isinstance(found, torch.Tensor):
        return [found] if found.is_floating_point() else []
    if isinstance(found, dict):
        found = list(found.values())
    return [t for part in found for t in _tensors(torch, part)] if isinstance(found, list | tuple) else []


def _digest(tensors: list[Any]) -> list[float]:
    """Number of tensors, number of elements, sum, sum of magnitudes, and inner product with random numbers."""
    flat = np.concatenate([t.detach().numpy().astype(np.float64).ravel() for t in tensors] or [np.zeros(0)])
    along = np.random.RandomState(7).randn(flat.size)
    return [len(tensors), flat.size, float(flat.sum()), float(np.abs(flat).sum()), float(flat @ along)]


def difference(got: dict[str, list[float]], want: dict[str, list[float]]) -> str:
    """Description of the first difference, or an empty text."""
    for part, digest in want.items():
        if got[part][:2] != digest[:2]:
            return f"{part}: {got[part][:2]} tensors and elements for {digest[:2]}"
        scale = max(digest[3], 1e-3)
        error = max(abs(a - b) for a, b in zip(got[part][2:], digest[2:], strict=True)) / scale
        if not error < TOLERANCE:
            return f"{part}: differs by {error:.1e} of its magnitude"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.libraries", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="store torch's outcomes")
    parser.add_argument("--compiled", action="store_true", help="compile the models")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further model after so long")
    parser.add_argument("names", nargs="*", help="models, or libraries; all by default")
    options = parser.parse_args()
    if not options.record:
        alias_torch()
    import torch  # torch itself, or this project under its name

    warnings.simplefilter("ignore")
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    wanted = [n for n in CASES if not options.names or n in options.names or n.split("/")[0] in options.names]
    counts = {"agree": 0, "differ": 0, "fail": 0, "absent": 0}
    start = time.monotonic()
    for name in wanted:
        if time.monotonic() - start > options.seconds:
            break
        counts[_one(torch, name, options, stored)] += 1
        if options.record:
            STORED.write_text(json.dumps(dict(sorted(stored.items())), indent=0) + "\n")
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return 1 if counts["differ"] or counts["fail"] else 0


def _one(torch: Any, name: str, options: Any, stored: dict[str, Any]) -> str:
    begin = time.monotonic()
    try:
        got = outcome(torch, name, options.compiled)
    except ModuleNotFoundError as error:
        print(f"absent  {name}: {error}", flush=True)
        return "absent"
    except Exception as error:  # noqa: BLE001 - a model that cannot run is a result of this script
        print(f"fail    {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        return "fail"
    if options.record:
        stored[name] = got
    if name not in stored:
        print(f"absent  {name}: no stored outcome of torch", flush=True)
        return "absent"
    text = difference(got, stored[name])
    print(f"{'differ' if text else 'agree'}   {name} ({time.monotonic() - begin:.1f} s) {text}", flush=True)
    return "differ" if text else "agree"


def alias_torch() -> None:
    """From here on `import torch` is this project."""
    import eager.as_torch

    eager.as_torch.install()


if __name__ == "__main__":
    sys.exit(main())
