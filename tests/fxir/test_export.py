"""Saved graphs: run elsewhere without their source, refuse damage, run no code of the file's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import eager
from eager.optable.table import OPS
from fxir.base.origin import Origin
from fxir.ir.fingerprint import canonical_form
from fxir.ir.graph import Graph
from fxir.ir.graph_file import ExportError, load, save
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import NodeInfo
from fxir.trace.trace import trace
from tests.fxir.helpers import array, assert_same_tensors, capture, fakes_of

ROOT = Path(__file__).resolve().parents[2]


def model(x, w):
    c = eager.tensor([1.0, float("inf"), -0.0])
    h = (x @ w).exp().half().to(eager.float64)
    x.add_(1)
    return h + c, eager.cat([h, h], 1)[:, ::2], h > 1, x.t()


def traced():
    eager.manual_seed(0)
    x, w = eager.randn(2, 4), eager.randn(4, 3)
    graph = trace(GraphModule({}, capture(model, 2).graph), fakes_of([x, w]))
    return GraphModule(graph.root, graph, "model"), x, w


def test_a_loaded_graph_is_the_same(tmp_path):
    gm, x, w = traced()
    save(gm, tmp_path / "m.fx")
    again = load(tmp_path / "m.fx")
    assert canonical_form(again.graph) == canonical_form(gm.graph)
    assert again.name == "model" and again.graph.signature == gm.graph.signature
    assert [n.name for n in again.graph.nodes] == [n.name for n in gm.graph.nodes]
    assert_same_tensors(again(x, w), gm(x, w), rtol=0, atol=0)


def test_it_runs_in_a_process_without_the_source(tmp_path):
    gm, x, w = traced()
    save(gm, tmp_path / "m.fx")
    np.savez(tmp_path / "in.npz", x=x.numpy(), w=w.numpy())
    program = (
        "import numpy as np, eager\nfrom fxir.ir.graph_file import load\n"
        "i = np.load('in.npz')\n"
        "out = load('m.fx')(eager.tensor(i['x'].tolist()), eager.tensor(i['w'].tolist()))\n"
        "np.savez('out.npz', *[np.array(o.tolist()) for o in out])"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        timeout=300,
    )
    out = np.load(tmp_path / "out.npz")
    for k, want in enumerate(gm(x, w)):
        np.testing.assert_allclose(out[f"arr_{k}"], array(want), rtol=1e-5)


def test_every_argument_kind_and_dtype_survives(tmp_path):
    tensors = {d.name: eager.zeros(2, 2).to(d) for d in (eager.bool, eager.int8, eager.bfloat16, eager.float16)}
    g = Graph({**tensors, "plain": (1, [2.5, None])})
    x = g.placeholder("x", -0.0, info=NodeInfo(None, Origin("m.py", 3, "x", "f")))
    values = [g.get_attr(k) for k in g.root]
    picked = g.call_function(eager.add, (x, 1), {"alpha": 3})
    g.output((picked, *values, {"k": slice(1, None, x)}, ..., eager.float32, eager.device("cpu"), float("nan"), 1j))
    gm = GraphModule(g.root, g)
    save(gm, tmp_path / "g")
    again = load(tmp_path / "g")
    assert again.graph.placeholders[0].info.origin == Origin("m.py", 3, "x", "f")
    got, want = again(eager.ones(1)), gm(eager.ones(1))
    assert_same_tensors(got[:5], want[:5])
    assert canonical_form(again.graph) == canonical_form(g)


def test_targets_without_a_name_raise(tmp_path):
    with pytest.raises(ExportError, match="Trace the graph to ops first"):
        save(capture(lambda x: x, 1), tmp_path / "g")
    g = Graph()
    g.output(g.call_function(OPS["neg"], (object(),)))
    with pytest.raises(ExportError, match="object"):
        save(GraphModule({}, g), tmp_path / "g")
    assert not list(tmp_path.iterdir()), "a failed save leaves nothing behind"


def _rewrite(path, change):
    with zipfile.ZipFile(path) as z:
        files = {n: z.read(n) for n in z.namelist()}
    change(files)
    with zipfile.ZipFile(path, "w") as z:
        for n, data in files.items():
            z.writestr(n, data)


def test_damaged_files_raise(tmp_path):
    gm, *_ = traced()
    path = tmp_path / "m.fx"

    def edit(fn):
        def change(files):
            document = json.loads(files["graph.json"])
            fn(document)
            files["graph.json"] = json.dumps(document).encode()

        return change

    def flip(files):
        name = next(n for n in files if n.startswith("tensors/"))
        files[name] = bytes([files[name][0] ^ 1]) + files[name][1:]

    def other_op(document):
        node = next(n for n in document["nodes"] if isinstance(n["target"], dict))
        node["target"]["schema"] = "mm(Tensor a) -> Tensor"

    def os_system(document):
        node = next(n for n in document["nodes"] if isinstance(n["target"], dict))
        node["target"] = {"module": "os", "name": "system"}

    for change, text in (
        (flip, "bytes of the carried tensor"),
        (edit(lambda d: d.update(format=99)), "format 99"),
        (edit(other_op), "here it is"),
        (edit(os_system), "allowed: operator, eager"),
        (lambda files: files.pop("graph.json"), "damaged"),
    ):
        save(gm, path)
        _rewrite(path, change)
        with pytest.raises(ExportError, match=text):
            load(path)
    save(gm, path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ExportError, match="damaged"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def test_a_save_replaces_the_former_file_in_one_step(tmp_path):
    gm, x, w = traced()
    path = tmp_path / "m.fx"
    path.write_text("old")
    save(gm, path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.fx"]
    assert_same_tensors(load(path)(x, w), gm(x, w))
