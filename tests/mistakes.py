"""Ordinary mistakes, as lines of a program, with the class and the message that torch raises for each.

`/opt/ref/bin/python tests/mistakes.py` (any Python with torch 2.13) writes tests/data/mistakes.json; tests/eager/functions/test_mistakes.py
holds the library to it. A line is a whole program, or the body of a function with the argument `x`.
"""
from __future__ import annotations

import json
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data" / "mistakes.json"

# Mistakes that a compiled function raises as well: x is torch.ones(2, 3).
IN_FUNCTIONS = {
    "matmul": "x @ torch.ones(4, 5)",
    "mm of vectors": "torch.mm(x, torch.ones(3))",
    "bmm": "torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 5, 6))",
    "dtypes of matmul": "x @ torch.ones(3, 4, dtype=torch.float64)",
    "dot": "torch.dot(torch.ones(3), torch.ones(4))",
    "linear": "F.linear(x, torch.ones(4, 5))",
    "layer": "torch.nn.Linear(7, 2)(x)",
    "conv channels": "F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 2, 3, 3))",
    "conv kernel": "F.conv2d(torch.ones(1, 3, 2, 2), torch.ones(4, 3, 5, 5))",
    "broadcast": "x + torch.ones(2, 4)",
    "in-place broadcast": "torch.ones(3).add_(torch.ones(2, 3))",
    "in-place dtype": "torch.ones(3, dtype=torch.int64).add_(1.5)",
    "cat": "torch.cat([x, torch.ones(3, 4)])",
    "cat of dims": "torch.cat([x, torch.ones(3)])",
    "stack": "torch.stack([x, torch.ones(3)])",
    "view": "x.view(4, 2)",
    "view of strides": "x.t().view(6)",
    "reshape": "x.reshape(5)",
    "reshape of two unknowns": "x.reshape(-1, -1)",
    "expand": "x.expand(2, 4)",
    "squeeze of no dim": "x.squeeze(5)",
    "transpose": "x.transpose(0, 2)",
    "permute": "x.permute(0, 1, 2)",
    "sum of no dim": "x.sum(2)",
    "softmax of no dim": "torch.softmax(x, 2)",
    "index": "x[2]",
    "indices": "x[0, 0, 0]",
    "index_select": "x.index_select(5, torch.tensor([0]))",
    "gather dims": "x.gather(0, torch.tensor([0]))",
    "chunk": "x.chunk(0)",
    "split": "x.split([1, 5])",
    "layer norm": "F.layer_norm(x, (4,))",
    "batch norm": "torch.nn.BatchNorm1d(4)(x)",
    "group norm": "torch.nn.GroupNorm(2, 3)(x)",
    "cross entropy batch": "F.cross_entropy(x, torch.tensor([0, 1, 2]))",
    "cross entropy dtype": "F.cross_entropy(x, torch.tensor([0, 1], dtype=torch.int32))",
    "reduction": "F.mse_loss(x, x, reduction='avg')",
    "binary cross entropy": "F.binary_cross_entropy_with_logits(x, torch.ones(3))",
    "embedding of floats": "F.embedding(x, torch.ones(4, 2))",
    "reflect": "F.pad(torch.ones(1, 2, 3), (4, 4), mode='reflect')",
    "pixel shuffle": "F.pixel_shuffle(torch.ones(2, 3), 2)",
    "overlap": "x.view(6)[1:].add_(x.view(6)[:-1])",
    "expanded target": "torch.ones(1).expand(3).add_(1)",
    "attribute of a tensor": "x.shpae",
}
# Mistakes of eager programs: data that is out of range, state, and the calls around a model.
ALONE = {
    "index out of range": "torch.ones(3)[torch.tensor([5])]",
    "embedding index": "F.embedding(torch.tensor([7]), torch.ones(3, 2))",
    "index_add": "torch.ones(3).index_add_(0, torch.tensor([5]), torch.ones(1))",
    "target": "F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))",
    "range": "torch.arange(0, 1, 0)",
    "negative size": "torch.randn(-1)",
    "size of text": "torch.Size(['a'])",
    "ragged": "torch.tensor([[1, 2], [3]])",
    "item": "torch.ones(3).item()",
    "truth": "bool(torch.ones(3))",
    "int of many": "int(torch.ones(3))",
    "numpy of a leaf": "torch.ones(3, requires_grad=True).numpy()",
    "requires_grad of ints": "torch.ones(3, dtype=torch.int64).requires_grad_()",
    "leaf in place": "torch.ones(3, requires_grad=True).add_(1)",
    "backward of a vector": "torch.ones(3, requires_grad=True).mul(2).backward()",
    "backward without history": "torch.ones(1).backward()",
    "backward twice": "y = torch.ones(3, requires_grad=True).exp().sum(); y.backward(); y.backward()",
    "modified": "x = torch.ones(3, requires_grad=True); y = x.exp(); y.add_(1); y.sum().backward()",
    "unused input": "a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True); torch.autograd.grad(a.sum(), b)",
    "missing keys": "torch.nn.Linear(2, 3).load_state_dict({})",
    "unexpected keys": "m = torch.nn.Linear(2, 3); m.load_state_dict({**m.state_dict(), 'extra': torch.ones(1)})",
    "sizes of state": "torch.nn.Linear(2, 3).load_state_dict(torch.nn.Linear(3, 3).state_dict())",
    "attribute of a module": "torch.nn.Linear(2, 3).wieght",
    "no super().__init__": "class M(torch.nn.Module):\n    def __init__(self): self.l = torch.nn.Linear(1, 1)\nM()",
    "no forward": "class M(torch.nn.Module): pass\nM()(1)",
    "no parameters": "torch.optim.SGD([], lr=0.1)",
    "negative rate": "torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=-1)",
    "parameters of no leaf": "torch.optim.SGD([torch.ones(1, requires_grad=True) * 2], lr=0.1)",
    "groups of conv": "torch.nn.Conv2d(3, 4, 3, groups=2)",
    "dropout": "torch.nn.Dropout(2)",
    "register": "torch.nn.Linear(2, 3).register_buffer('weight', torch.ones(1))",
    "parameter slot": "m = torch.nn.Linear(2, 3); m.weight = torch.ones(3, 2)",
    "two input tensors": "torch.maximum(torch.ones(2), 'a')",
    "unknown device": "torch.ones(1, device='gpu')",
    "no file": "torch.load('/nowhere.pt')",
    "empty stack": "torch.stack([])",
    "max of nothing": "torch.ones(0).max()",
    "matrix": "torch.linalg.inv(torch.zeros(2, 2))",
    "cholesky": "torch.linalg.cholesky(-torch.eye(2))",
    "view in place of inference": "with torch.inference_mode(): x = torch.ones(2)\nx.add_(1)",
    "graph": "x = torch.ones(2, requires_grad=True) * 1\nimport copy; copy.deepcopy(x)",
    "scalar": "torch.ones(2, 2).tolist()[3]",
    "gradient shape": "torch.ones(3, requires_grad=True).mul(1).backward(torch.ones(2))",
    "grad of wrong size": "x = torch.ones(2, requires_grad=True); x.grad = torch.ones(3)",
    "backend": "torch.compile(lambda x: x, backend='nope')",
}


def program(name: str) -> str:
    """The lines of a mistake, to be run with `torch` and `F`."""
    line = IN_FUNCTIONS.get(name)
    return ALONE[name] if line is None else f"def f(x):\n    y = {line}\n    return y\nf(torch.ones(2, 3))"


def outcome(name: str, names: dict[str, object]) -> tuple[str, str] | None:
    """The class and the message of the error that the program raises; None if it raises no error."""
    try:
        exec(compile(program(name), "<mistake>", "exec"), dict(names))  # noqa: S102 - our own lines
    except Exception as error:  # noqa: BLE001 - it is the outcome
        return type(error).__name__, str(error)
    return None


if __name__ == "__main__":
    import torch

    table = {name: outcome(name, {"torch": torch, "F": torch.nn.functional}) for name in (*IN_FUNCTIONS, *ALONE)}
    silent = [name for name, found in table.items() if found is None]
    assert not silent, silent
    DATA.write_text(json.dumps(table, indent=0) + "\n")
