"""torch.compiler, torch._dynamo and the two config modules: every name works, or its error names the missing feature."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import eager as torch
from dynamo.compilation import region
from dynamo.report.errors import UnsupportedUnderFullgraph
from dynamo.testing import CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs
from eager.base import settings
from inductor import config as inductor_config
from tests.dynamo.api.test_compile import same, x23

COMPILER_NAMES = (
    "compile config assume_constant_result reset allow_in_graph substitute_in_graph list_backends disable set_default_backend "
    "get_default_backend set_stance set_enable_guard_collectives cudagraph_mark_step_begin load_compiled_function wrap_numpy is_compiling "
    "is_dynamo_compiling is_exporting save_cache_artifacts load_cache_artifacts keep_portable_guards_unsafe "
    "skip_guard_on_inbuilt_nn_modules_unsafe skip_guard_on_all_nn_modules_unsafe keep_tensor_guards_unsafe "
    "skip_guard_on_globals_unsafe skip_all_guards_unsafe nested_compile_region"
).split()


@pytest.mark.parametrize("name", COMPILER_NAMES)
def test_every_name_of_torch_compiler_exists(name: str) -> None:
    found = getattr(torch.compiler, name)
    if getattr(found, "__name__", "") == "missing":
        with pytest.raises(NotImplementedError, match=f"torch.compiler.{name}: not supported; "):
            found()


def test_the_stance_is_a_context_a_decorator_and_a_call() -> None:
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x + 1, backend=counter)
    with torch.compiler.set_stance("force_eager"):
        compiled(x23())
    assert counter.frame_count == 0

    @torch.compiler.set_stance("force_eager")
    def eagerly():
        return compiled(x23())

    eagerly()
    assert counter.frame_count == 0
    torch.compiler.set_stance("force_eager")
    compiled(x23())
    torch.compiler.set_stance("default")
    assert counter.frame_count == 0
    compiled(x23())
    assert counter.frame_count == 1


def test_unsupported_options_of_the_stance_are_refused() -> None:
    for given in ({"skip_guard_eval_unsafe": True}, {"force_backend": "eager"}, {"stance": "aot_eager_then_compile"}):
        with pytest.raises(NotImplementedError, match="set_stance"):
            torch.compiler.set_stance(**given)
    with pytest.raises(RuntimeError, match="non-default stance cannot have force_backend"):
        torch.compiler.set_stance("force_eager", force_backend="eager")
    assert region.stance().name == "default"


def test_counters_and_recorders() -> None:
    counter, aot, recorder = CompileCounter(), CompileCounterWithBackend("aot_eager"), EagerAndRecordGraphs()
    for backend in (counter, aot, recorder):

        def f(x):
            y = x * 2
            torch._dynamo.graph_break()
            return y.sum() + 1

        assert same(torch.compile(f, backend=backend)(x23()), f(x23()))
    assert (counter.frame_count, counter.op_count) == (2, 3)
    assert (aot.frame_count, aot.op_count) == (2, 3)
    assert len(recorder.graphs) == 2


def test_errors_at_breaks_for_a_block() -> None:
    def f(x):
        print(end="")
        return x + 1

    with torch._dynamo.error_on_graph_break(True), pytest.raises(UnsupportedUnderFullgraph, match=r"error_on_graph_break\(True\)"):
        torch.compile(f, backend="eager")(x23())
    with torch._dynamo.error_on_graph_break(False), pytest.raises(UnsupportedUnderFullgraph, match="fullgraph"):
        torch.compile(f, backend="eager", fullgraph=True)(x23())  # which goes before the block


def test_backends_by_name() -> None:
    @torch._dynamo.register_backend
    def names_backend(gm, example_inputs):
        return gm.forward

    @torch._dynamo.register_backend(name="named_backend")
    def other(gm, example_inputs):
        return gm.forward

    assert {"names_backend", "named_backend"} <= set(torch._dynamo.list_backends())
    assert same(torch.compile(lambda x: x * 2, backend="named_backend")(x23()), x23() * 2)
    assert torch._dynamo.lookup_backend(other) is other
    assert same(torch._dynamo.optimize("names_backend", nopython=True)(lambda x: x - 1)(x23()), x23() - 1)
    with pytest.raises(TypeError, match="register_backend"):
        torch._dynamo.register_backend(3)


def test_the_reason_of_disable_is_reported() -> None:
    @torch.compiler.disable(reason="it draws on the screen")
    def show(x):
        return x

    def f(x):
        return show(x + 1) * 2

    assert "show is marked with disable (it draws on the screen)" in str(torch._dynamo.explain(f)(x23()))


def test_numpy_functions_wrapped() -> None:
    found = torch.compiler.wrap_numpy(lambda a, b: (np.sin(a) + b["k"], 3) if isinstance(b, dict) else np.sin(a) + b)(x23(), 2)
    assert same(found, torch.from_numpy(np.sin(x23().numpy()) + 2))


def test_the_config_of_dynamo() -> None:
    config = torch._dynamo.config
    assert config.cache_size_limit == settings.current().capture.recompile_limit
    with config.patch(recompile_limit=2, verbose=True):
        assert (config.cache_size_limit, config.verbose) == (2, True)
    with config.patch({"suppress_errors": False}):
        assert not settings.current().capture.suppress_errors

    @config.patch("cache_size_limit", 3)
    def limited() -> int:
        return settings.current().capture.recompile_limit

    assert limited() == 3
    assert (config.cache_size_limit, config.verbose) == (8, False)
    with pytest.raises(AttributeError, match="nonesuch"):
        config.nonesuch = 1
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = config.nonesuch
    with pytest.raises(NotImplementedError, match="in a tensor"):
        config.allow_unspec_int_on_nn_module = True
    with pytest.raises(NotImplementedError), config.patch(verbose=True, compiled_autograd=True):
        raise AssertionError("not reached")
    assert not config.verbose
    config.compiled_autograd = False


def test_the_limit_set_through_the_config_holds() -> None:
    counter = CompileCounter()
    with torch._dynamo.config.patch(cache_size_limit=2):
        compiled = torch.compile(lambda x, k: x + len(k), backend=counter, dynamic=False)
        for k in ("", "a", "bb", "ccc"):
            assert same(compiled(x23(), k), x23() + len(k))
    assert counter.frame_count == 2


def test_the_config_of_inductor() -> None:
    with inductor_config.patch({"triton.unique_kernel_names": False, "max_autotune": True, "force_disable_caches": True}):
        assert settings.current().cpu.max_autotune
        assert not settings.current().cache.enabled
        assert not inductor_config.triton.unique_kernel_names
    assert inductor_config.triton.unique_kernel_names
    with pytest.raises(NotImplementedError, match="reduce-overhead"):
        inductor_config.triton.cudagraphs = True
    assert torch._inductor.config is inductor_config


def test_a_user_backend_gets_options_and_mode_as_keywords() -> None:
    given = []

    def backend(gm, example_inputs, **keywords):
        given.append(keywords)
        return gm

    torch.compile(lambda x: x + 1, backend=backend)(x23())
    torch.compile(lambda x: x + 1, backend=backend, options={"a": 1})(x23())
    torch.compile(lambda x: x + 1, backend=backend, mode="max-autotune")(x23())
    assert given == [{}, {"options": {"a": 1}}, {"mode": "max-autotune"}]

    def with_default(gm, example_inputs, inner="mine"):
        assert inner == "mine"
        return gm

    torch.compile(lambda x: x + 1, backend=with_default)(x23())


@pytest.mark.parametrize(("options", "kind", "text"), [
    ({"no_such": 1}, RuntimeError, "Unexpected optimization option no_such"),
    ({"max_autotune": "yes"}, RuntimeError, "got str should be bool"),
    ({"triton.cudagraphs": True}, NotImplementedError, "reduce-overhead"),
    ({"fx_graph_cache": False}, NotImplementedError, "setting of the process"),
])  # fmt: skip
def test_options_of_the_inductor_are_checked_at_once(options, kind, text) -> None:
    if options == {"fx_graph_cache": False}:
        options = {"fx_graph_cache": not torch._inductor.config.fx_graph_cache}
    with pytest.raises(kind, match=text):
        torch.compile(lambda x: x, options=options)


def test_options_and_modes_are_listed_and_modes_are_made_of_options() -> None:
    options = torch._inductor.list_options()
    assert {"max_autotune", "triton.cudagraphs", "packing"} <= set(options)
    assert set(torch._inductor.list_mode_options("max-autotune")) <= set(options)
    assert torch.compile(lambda x: x + 1, options={"max-autotune": False, "packing": True})(x23()).tolist() == (x23() + 1).tolist()


def test_the_first_call_runs_eagerly_and_the_second_learns_from_it() -> None:
    counter = CompileCounter()
    f = torch.compile(lambda x, n: x * n, backend=counter)
    with torch.compiler.set_stance("eager_then_compile"):
        f(torch.ones(3), 2)
        assert counter.frame_count == 0
        for size, n in ((4, 3), (5, 4), (6, 7)):
            assert f(torch.ones(size), n).tolist() == [n] * size
    assert counter.frame_count == 1


def test_nothing_is_compiled_where_the_stance_forbids_it() -> None:
    f = torch.compile(lambda x: x + 1, backend="eager")
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match=r"Detected recompile .*not compiled before"):
        f(x23())
    f(x23())
    with torch.compiler.set_stance("fail_on_recompile"):
        f(x23())
        with pytest.raises(RuntimeError, match="its guard failed: x"):
            f(torch.ones(5))
    assert torch._dynamo.run(f)(torch.ones(7)).tolist() == [2.0] * 7


def test_a_disabled_class_is_made_and_called_uncompiled() -> None:
    @torch.compiler.disable(reason="it keeps files")
    class Keeper:
        def __init__(self):
            self.seen = [torch.compiler.is_compiling()]

        def __call__(self):
            self.seen.append(torch.compiler.is_compiling())
            return self.seen

    def f(x):
        return x + 1, Keeper()(), torch._dynamo.is_compiling()

    assert torch.compile(f, backend="eager")(x23())[1:] == ([False, False], True)
    assert "it keeps files" in torch._dynamo.explain(f)(x23()).break_reasons[0].reason


def test_a_nonstrict_function_takes_and_returns_structures() -> None:
    @torch._dynamo.nonstrict_trace
    def opaque(x, d):
        torch._dynamo.graph_break()
        return {"sum": x + d["k"], "parts": [x, 3], 2: None}

    def f(x):
        found = opaque(x, {"k": x * 2})
        return found["sum"] + found["parts"][0] * found["parts"][1], found[2], list(found)

    counter = CompileCounter()
    for _ in range(2):
        y, none, keys = torch.compile(f, fullgraph=True, backend=counter)(x23())
        assert (y.tolist(), none, keys) == ((x23() * 6).tolist(), None, ["sum", "parts", 2])


def test_c_functions_are_substituted_and_folded() -> None:
    @torch.compiler.substitute_in_graph(operator.indexOf, can_constant_fold_through=True)
    def index_of(a, b, /):
        return next(i for i, item in enumerate(a) if item is b)

    def f(x, y):
        return x + operator.indexOf([y, x], x), operator.indexOf((4, 5), 5)

    result, folded = torch.compile(f, fullgraph=True, backend="eager")(x23(), x23())
    assert (result.tolist(), folded) == ((x23() + 1).tolist(), 1)
    with pytest.raises(TypeError, match="substitute_in_graph expects a function but got"):
        torch.compiler.substitute_in_graph(3)
