"""Write torch_saved.pt.b64, a small file of torch.save, and torch_pickled.b64, one of pickle alone, as text.

Needs torch (made with 2.13.0).
"""
from __future__ import annotations

import base64
import collections
import io
import pickle
from pathlib import Path

import torch


def main() -> None:
    model = collections.OrderedDict({
        "0.weight": torch.arange(6.0).view(2, 3), "0.bias": torch.zeros(2),
        "1.weight": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    })  # fmt: skip
    p = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
    optimizer = torch.optim.AdamW([p])
    p.sum().backward()
    optimizer.step()
    state = {"model": model, "view": torch.arange(4.0).view(2, 2).t(), "param": torch.nn.Parameter(torch.ones(2)), "step": 7,
             "dtype": torch.float64, "optimizer": optimizer.state_dict()}  # fmt: skip
    buffer = io.BytesIO()
    torch.save(state, buffer)
    _write("torch_saved.pt.b64", buffer.getvalue())
    _write("torch_pickled.b64", pickle.dumps(state | {"meta": torch.empty(2, 3, device="meta").t()}))


def _write(name: str, content: bytes) -> None:
    (Path(__file__).parent / name).write_text(base64.encodebytes(content).decode())


if __name__ == "__main__":
    main()
