"""Graph, printer, interpreter, GraphModule, verifier."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager
from eager.base.spec import TensorSpec, spec_of
from eager.optable.table import OPS
from fxir.base.origin import Origin
from fxir.ir.graph import Graph, GraphSignature
from fxir.ir.graph_module import GraphModule, Interpreter
from fxir.ir.listing import format_spec
from fxir.ir.node import Node, NodeInfo, map_nodes, walk_nodes
from fxir.ir.printer import print_python
from fxir.ir.verifier import GraphError, verify
from fxir.trace.trace import trace
from tests.fxir.helpers import array, assert_same_tensors, fakes_of


def small():
    """x, y -> ((x + y) * 3, x)."""
    g = Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    total = g.call_function(operator.add, (x, y))
    g.output((g.call_function(operator.mul, (total, 3)), x))
    return g


def everything():
    """A graph with every kind of node and of argument."""
    eager.manual_seed(0)
    root = {"w": eager.randn(3, 4), "scale.by": lambda t, by=1: t * by}
    g = Graph(root)
    x = g.placeholder("x")
    k = g.placeholder("k", default_value=2.5)
    w = g.get_attr("w")
    a = g.call_function(eager.add, (x, w), {"alpha": 2})
    b = g.call_method("view", (a, (-1,)))
    c = g.call_function(OPS["sum"], (b, (0,), True, None))
    d = g.call_module("scale.by", (x,), {"by": k})
    e = g.call_function(operator.getitem, (x, (slice(None), slice(1, 3, None))))
    f = g.call_function(OPS["full"], ((2, 2), float("inf"), eager.float64, eager.device("cpu")))
    h = g.call_function(OPS["cat"], ([e, e], 1))
    g.output((a, {"c": c, "more": [d, f]}, h, -math.inf, ..., None, 1 + 2j, "te'xt", b"\0"))
    return GraphModule(root, verify(g))


def flat(x):
    if isinstance(x, dict):
        x = list(x.values())
    return [z for y in x for z in flat(y)] if isinstance(x, tuple | list) else [x]


# ---- printer ----
def test_printed_source_runs_and_gives_the_same():
    gm = everything()
    x = eager.randn(3, 4)
    for code in (print_python(gm.graph), print_python(gm.graph, annotate=True), print_python(gm.graph, free=True)):
        space = dict(code.globals)
        exec(code.source, space)
        got, want = space["forward"](gm, x), Interpreter(gm).run(x)
        assert_same_tensors(flat(got)[:-5], flat(want)[:-5])
        assert flat(got)[-5:] == flat(want)[-5:]


def test_printed_source_of_traced_ops_needs_no_globals():
    graph = trace(
        lambda x: (x.softmax(-1) if hasattr(x, "softmax") else x.exp(), x[1:].t() @ x[1:]),
        fakes_of([eager.randn(3, 4)]),
    )
    code = print_python(graph)
    assert not code.globals
    space = {}
    exec(code.source, space)
    x = eager.randn(3, 4)
    gm = GraphModule(graph.root, graph)
    assert_same_tensors(space["forward"](gm, x), gm(x))


def test_printing_the_printed_graph_again_is_stable():
    gm = everything()
    assert print_python(gm.graph.copy()).source == print_python(gm.graph).source == print_python(gm.graph).source


def test_values_that_have_no_name_travel_beside_the_text():
    def local(x):
        return x * 2

    g = Graph()
    g.output(g.call_function(local, (g.placeholder("x"),)))
    code = print_python(g)
    assert list(code.globals.values()) == [local]
    assert GraphModule({}, g)(4) == 8


def test_a_node_named_like_a_module_does_not_hide_it():
    g = Graph()
    x = g.placeholder("operator")
    g.output(g.call_function(operator.neg, (g.call_function(eager.neg, (g.placeholder("eager"),)),)))
    assert array(GraphModule({}, g)(None, eager.ones(1))).tolist() == [1]
    assert x.name == "operator" and [p.name for p in g.placeholders][1] == "eager_1"


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(...), st.complex_numbers(),
    st.sampled_from([eager.float32, eager.bool, eager.bfloat16, eager.device("cpu")]),
)  # fmt: skip
arguments = st.recursive(
    scalars,
    lambda s: st.one_of(
        st.lists(s, max_size=3), st.lists(s, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), s, max_size=3),
        st.tuples(s, s, s).map(lambda t: slice(*t)),
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(arguments)
def test_every_argument_value_survives_printing(value):
    g = Graph()
    g.output(g.call_function(operator.getitem, ([value], 0)))
    assert repr(GraphModule({}, g)()) == repr(value)


def test_specs_and_user_lines_are_printed():
    g = Graph()
    spec = spec_of(eager.randn(3, 4).t())
    x = g.placeholder("x", info=NodeInfo(spec))
    g.output(g.call_function(eager.neg, (x,), info=NodeInfo(spec, Origin("m.py", 3, "  y = -x", "f"))))
    text = print_python(g, annotate=True).source
    assert "f32[4, 3]s[1, 4]" in text and "# m.py:3 in f: y = -x" in text
    assert format_spec((spec, None)) == "(f32[4, 3]s[1, 4], ?)"


# ---- interpreter ----
def test_interpreter_and_graph_module_agree_and_free_values():
    gm = everything()
    x = eager.randn(3, 4)
    assert_same_tensors(flat(gm(x))[:4], flat(Interpreter(gm).run(x))[:4])
    live = []

    class Watch(Interpreter):
        def run_node(self, node):
            live.append(len(self.env))
            return super().run_node(node)

    g = Graph()
    v = g.placeholder("x")
    for _ in range(10):
        v = g.call_function(operator.add, (v, 1))
    g.output(v)
    assert Watch(g).run(1) == 11 and max(live) <= 1


def test_wrong_argument_counts_raise():
    with pytest.raises(TypeError, match="2 arguments, 3"):
        Interpreter(small()).run(1, 2, 3)
    with pytest.raises(TypeError, match="'y'"):
        Interpreter(small()).run(1)


def test_one_method_per_kind_can_be_overridden():
    class Double(Interpreter):
        def call_function(self, target, args, kwargs):
            return 2 * super().call_function(target, args, kwargs)

    assert Double(small()).run(1, 2)[0] == 36


# ---- editing ----
def test_users_follow_every_edit():
    g = small()
    x, y, total, product, out = g.nodes
    assert list(x.users) == [total, out] and total.inputs == (x, y)
    total.args = (y, y)
    assert list(x.users) == [out] and list(y.users) == [total]
    product.replace_input(total, x)
    assert not total.users
    g.erase_node(total)
    verify(g)
    with pytest.raises(RuntimeError, match="used by"):
        g.erase_node(x)
    assert len(g) == 4


def test_arguments_cannot_be_changed_behind_the_graph():
    g = Graph()
    x = g.placeholder("x")
    given_list = [x, 1]
    n = g.call_function(max, (given_list,))
    given_list.append(2)
    assert n.args == ([x, 1],)


def test_nodes_go_where_the_cursor_is():
    g = small()
    x, y, total, *_ = g.nodes
    with g.inserting_before(total):
        a = g.call_function(operator.neg, (x,))
    with g.inserting_after(total):
        b = g.call_function(operator.neg, (total,))
        c = g.call_function(operator.neg, (b,))
    assert [n.name for n in g.nodes][:6] == [n.name for n in (x, y, a, total, b, c)]
    g.move_before(c, g.output_node)
    assert list(g.nodes)[-2] is c
    verify(g)


def test_erasing_while_iterating():
    g = small()
    for n in g.nodes:
        if n.op == "call_function" and n.users:
            n.replace_all_uses_with(n.args[0])
            g.erase_node(n)
    verify(g)
    assert len(g) == 3


def test_names_are_unique_and_legal():
    g = Graph()
    names = [g.placeholder(n).name for n in ("x", "x", "x_1", "class", "sum", "a.b-c", "3d", "", "self", "match")]
    assert len(set(names)) == len(names)
    assert all(n.isidentifier() and n not in ("class", "sum", "self", "match") for n in names)


def test_an_edit_shows_in_the_compiled_module():
    gm = GraphModule({}, small())
    assert gm(1, 2) == (9, 1)
    gm.graph.find("call_function", operator.mul)[0].target = operator.add
    gm.graph.touch()
    assert gm(1, 2) == (6, 1)


def test_copy_is_equal_and_apart():
    gm = everything()
    g = gm.graph.copy()
    g.signature = GraphSignature((0,), 1)
    verify(g)
    assert not {id(n) for n in g.nodes} & {id(n) for n in gm.graph.nodes}
    assert g.copy().signature == g.signature
    g.output_node.args = ((),)
    g.eliminate_dead_code()
    assert len(gm.graph) > len(g)


def test_copying_into_a_graph_renames_clashing_values():
    a, b = Graph({"w": 1}), Graph({"w": 2})
    b.output(b.get_attr("w"))
    a.output((a.get_attr("w"), a.copy_from(b, {})))
    assert GraphModule(a.root, verify(a))() == (1, 2)


def test_dead_code_goes_but_effects_stay():
    g = Graph()
    x = g.placeholder("x")
    dead = g.call_function(OPS["neg"], (g.call_function(OPS["exp"], (x,)),))
    effect = g.call_function(OPS["rng_state"], (4, None))
    write = g.call_function(OPS["add_"], (x, 1))
    unknown = g.call_function(print, ("hello",))
    g.output(())
    assert g.eliminate_dead_code() == 2
    assert dead._erased and all(not n._erased and dead.graph.is_effectful(n) for n in (effect, write, unknown))


def test_map_and_walk_reach_every_container():
    g = Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    arg = ([x, {"k": (y, slice(x, None, y))}], 3)
    assert walk_nodes(arg) == [x, y, x, y]
    assert map_nodes(arg, lambda n: n.name) == (["x", {"k": ("y", slice("x", None, "y"))}], 3)


def test_bad_nodes_are_refused():
    g = Graph()
    for op, target in (("call_function", "add"), ("call_method", max), ("nonsense", "x")):
        with pytest.raises(ValueError, match=r"got|allowed"):
            Node(g, "n", op, target, (), {})


# ---- verifier ----
def _swap(g):
    nodes = list(g.nodes)
    g.move_before(nodes[3], nodes[2])


def _foreign(g):
    g.find("call_function")[0]._args = (small().placeholders[0], 1)


def _changed_list(g):
    n = g.find("call_function")[0]
    n._args = (n.args[1], n.args[1])


def _no_user(g):
    g.placeholders[0].users.clear()


def _ghost_user(g):
    g.placeholders[1].users[g.output_node] = None


def _two_outputs(g):
    g.output(1)


def _late_placeholder(g):
    with g.inserting_before(g.output_node):
        g.placeholder("z")


def _missing_value(g):
    with g.inserting_before(g.output_node):
        g.get_attr("nowhere")


def _same_name(g):
    g.placeholders[1].name = "x"


def _bad_name(g):
    g.placeholders[1].name = "not a name"


def _not_callable(g):
    g.find("call_function")[0].target = "add"


def _broken_link(g):
    g.placeholders[0]._next = g.output_node


def _erased_input(g):
    g.placeholders[0]._erased = True


def _wrong_count(g):
    g._len += 1


def _no_output(g):
    g.erase_node(g.output_node)


BREAKS = [
    (_changed_list, "without the graph's knowledge"),
    (_swap, "before that is computed"), (_foreign, "another graph"), (_no_user, "not among its users"),
    (_ghost_user, "does not read it"), (_two_outputs, "after the output"), (_late_placeholder, "after other nodes"),
    (_missing_value, "nowhere"), (_same_name, "same name"), (_bad_name, "identifier"), (_not_callable, "not callable"),
    (_broken_link, "links"), (_erased_input, "erased"), (_wrong_count, "counts"), (_no_output, "0 output nodes"),
]  # fmt: skip


@pytest.mark.parametrize("damage,text", BREAKS, ids=[f.__name__ for f, _ in BREAKS])
def test_verifier_catches(damage, text):
    g = verify(small())
    damage(g)
    with pytest.raises(GraphError, match=text):
        verify(g)


def functional():
    return trace(lambda x, y: (x.exp() + y, x.sum(0)), fakes_of([eager.randn(3, 4), eager.randn(4)]))


def _inplace(g):
    n = g.find("call_function", OPS["add"])[0]
    n.target = OPS["add_"]


def _keyword(g):
    n = g.find("call_function", OPS["exp"])[0]
    n.kwargs = {"x": n.args[0]}


def _no_spec(g):
    g.find("call_function")[0].info = NodeInfo()


def _python_target(g):
    g.find("call_function", OPS["exp"])[0].target = operator.neg


def _short_call(g):
    n = g.find("call_function", OPS["sum"])[0]
    n.args = n.args[:2]


def _nested_output(g):
    g.output_node.args = ([*g.outputs],)


def _bad_signature(g):
    g.signature = GraphSignature((0,), 5)


def _far_input(g):
    g.signature = GraphSignature((7,), 1)


FUNCTIONAL_BREAKS = [
    (_inplace, "writes its argument"), (_keyword, "by position"), (_no_spec, "no spec"), (_python_target, "not an op"),
    (_short_call, "takes 4 arguments"), (_nested_output, "flat tuple"), (_bad_signature, "outputs"),
    (_far_input, "does not exist"),
]  # fmt: skip


@pytest.mark.parametrize("damage,text", FUNCTIONAL_BREAKS, ids=[f.__name__ for f, _ in FUNCTIONAL_BREAKS])
def test_verifier_holds_the_contract_of_functional_graphs(damage, text):
    g = verify(functional(), functional=True, specs=True)
    damage(g)
    with pytest.raises(GraphError, match=text):
        verify(g, functional=True)


def test_verifier_recomputes_specs():
    g = functional()
    n = g.find("call_function", OPS["exp"])[0]
    n.info = NodeInfo(spec_of(eager.randn(3, 4).double()))
    with pytest.raises(GraphError, match="claims f64"):
        verify(g, specs=True)


def test_listing_is_aligned_and_says_what_each_node_gives() -> None:
    graph = Graph()
    spec = TensorSpec.contiguous((2, 3), eager.float32)
    x = graph.placeholder("x", info=NodeInfo(spec))
    total = graph.call_function(OPS["add"], (x, x), info=NodeInfo(spec))
    graph.output((total,))
    assert str(graph).splitlines() == [
        "x      = placeholder              # f32[2, 3]",
        "add    = call_function add(x, x)  # f32[2, 3]",
        "output = output        output((add,))",
    ]
