"""The canonical form: the same in every process, different for every difference that matters, blind to the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import eager
from eager.optable.table import OPS
from fxir.base.origin import Origin
from fxir.ir.fingerprint import SMALL_BYTES, canonical_form, graph_hash
from fxir.ir.graph import Graph, GraphSignature
from fxir.ir.node import NodeInfo
from fxir.trace.trace import trace
from tests.fxir.helpers import fakes_of

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import eager
from eager.base.spec import fake_like
from fxir.ir.fingerprint import graph_hash
from fxir.ir.graph import Graph
from fxir.trace.trace import trace
junk = [object() for _ in range({junk})]
def f(x, w):
    c = eager.tensor([1.0, 2.0, 3.0])
    return (x @ w + c).exp().sum(-1, keepdim=True), x[:, 1:3] * 0.1, {{"b", "a", "c"}} and w.t()
x, w = eager.zeros(2, 4), eager.zeros(4, 3)
print(graph_hash(trace(lambda x, w: f(x, w)[:2], [fake_like(x), fake_like(w)])))
g = Graph()
n = 5
g.output(g.call_function(lambda x: x * n + len({{"p", "q"}}), (g.placeholder("x"),)))
print(graph_hash(g))
"""


def test_the_same_in_every_process():
    outs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM.format(junk=junk)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True, timeout=120,
        ).stdout.split()
        for seed, junk in (("0", 1), ("1", 999), ("4242", 31))
    ]  # fmt: skip
    assert len(outs[0]) == 2 and outs[0] == outs[1] == outs[2]


def make(dtype=None, shape=(3, 4), number=2.0, constant=None, op="mul", strides=None, extra=False):
    x = eager.zeros(*shape).to(dtype or eager.float32)
    if strides:
        x = x.t().contiguous().t()
    c = eager.tensor([1.0, 2.0, 3.0, 4.0]) if constant is None else constant

    def f(x):
        y = OPS[op](x, number)
        return (y + c.to(y.dtype), y) if extra else y + c.to(y.dtype)

    return trace(f, fakes_of([x]))


BASE = graph_hash(make())
CHANGES = {
    "dtype": lambda: make(dtype=eager.float64),
    "shape": lambda: make(shape=(5, 4)),
    "strides": lambda: make(strides=True),
    "a number": lambda: make(number=3.0),
    "the type of a number": lambda: make(number=2),
    "the sign of zero": lambda: make(number=-0.0),
    "an op": lambda: make(op="div"),
    "outputs": lambda: make(extra=True),
    "a small constant's value": lambda: make(constant=eager.tensor([1.0, 2.0, 3.0, 5.0])),
    "a constant's spec": lambda: make(constant=eager.tensor([1.0])),
}


@pytest.mark.parametrize("what", sorted(CHANGES))
def test_sensitive_to(what):
    assert graph_hash(CHANGES[what]()) != BASE
    assert graph_hash(make()) == BASE


def test_sensitive_to_the_signature_the_order_and_defaults():
    hashes = set()
    for signature in (None, GraphSignature(), GraphSignature((0,)), GraphSignature(may_write=True)):
        g = make()
        g.signature = signature
        hashes.add(graph_hash(g))
    assert len(hashes) == 4

    def order(flip):
        g = Graph()
        x = g.placeholder("x")
        a, b = [g.call_function(OPS[n], (x,)) for n in (("sin", "cos") if flip else ("cos", "sin"))]
        g.output((a, b))
        return graph_hash(g)

    assert order(True) != order(False)


def test_zero_and_minus_zero_differ_and_nan_is_one_value():
    def of(value):
        g = Graph()
        g.output(g.call_function(max, (value, 1)))
        return canonical_form(g)

    assert of(0.0) != of(-0.0) and of(1) != of(True) != of(1.0)
    assert of(float("nan")) == of(-float("nan"))


def test_blind_to_names_lines_and_identities():
    def build(prefix, origin):
        g = Graph({f"{prefix}w": eager.ones(2)})
        x = g.placeholder(f"{prefix}x")
        w = g.get_attr(f"{prefix}w")
        g.output((g.call_function(OPS["add"], (x, w), name=f"{prefix}y", info=NodeInfo(None, origin)),))
        return g

    assert graph_hash(build("", None)) == graph_hash(build("other_", Origin("f.py", 3)))


def test_a_large_constant_counts_by_its_spec_only():
    n = SMALL_BYTES // 4 + 1

    def of(value, n):
        g = Graph({"w": eager.zeros(n).fill_(value)})
        g.output(g.get_attr("w"))
        return graph_hash(g)

    assert of(1, n) == of(2, n) and of(1, n) != of(1, n + 1) and of(1, 3) != of(2, 3)


def test_local_functions_count_by_their_content():
    def of(fn):
        g = Graph()
        g.output(g.call_function(fn, (g.placeholder("x"),)))
        return graph_hash(g)

    def closing(n):
        return lambda x: x + n

    assert of(closing(1)) == of(closing(1)) != of(closing(2))
    assert of(lambda x: x * 2) != of(lambda x: x * 3) != of(lambda x: x - 3)


def test_values_without_stable_text_raise():
    g = Graph()
    g.output(g.call_function(max, (object(),)))
    with pytest.raises(NotImplementedError, match="no stable text"):
        canonical_form(g)
