"""Names that model libraries import: each exists and works."""

from __future__ import annotations

import copy
import pickle

import pytest

import eager as torch
from eager.base.spec import fake_like
from eager.utils import _pytree


def test_containers_flatten_under_separate_names():
    values, keys = _pytree._dict_flatten_with_keys({"a": 1, "b": 2})
    assert [(k.key, v) for k, v in values] == [("a", 1), ("b", 2)]
    assert _pytree._dict_unflatten([3, 4], keys) == {"a": 3, "b": 4}
    assert _pytree._list_flatten([1, 2]) == ([1, 2], None) and _pytree._tuple_unflatten([1, 2], None) == (1, 2)


def test_distributed_collectives_say_that_there_is_one_process():
    from eager.distributed import nn as dist_nn

    assert not torch.distributed.is_available()
    with pytest.raises(NotImplementedError, match=r"distributed\.nn\.all_reduce: framejit runs in one process"):
        dist_nn.all_reduce(torch.ones(2))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_graphs_and_generators_without_a_gpu():
    assert torch.cuda.default_generators == ()
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.cuda.CUDAGraph()
    with torch.cuda.stream(None), torch.cuda.StreamContext(None):
        pass


def test_indexing_by_batched_positions_needs_no_mode():
    from dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    x = torch.arange(12).reshape(3, 4)
    with TransformGetItemToIndex():
        rows = torch.func.vmap(lambda i: torch.func.vmap(lambda j: x[i, j])(torch.arange(4)))(torch.arange(3))
    assert torch.equal(rows, x)


def test_functions_of_the_top_level_have_an_older_address():
    assert torch.functional.einsum is torch.einsum
    assert all(getattr(torch, name) is getattr(torch.functional, name) for name in torch.functional.__all__)


def test_asserting_raises_with_the_message():
    torch._assert(torch.ones(1), "unseen")
    with pytest.raises(AssertionError, match="a batch, please"):
        torch._assert(torch.ones(2).ndim == 4, "a batch, please")


def test_nothing_is_exported_to_onnx():
    from eager.onnx import symbolic_opset11
    from eager.onnx.symbolic_helper import parse_args

    @parse_args("v", "i")
    def symbolic(g, x, axis):
        return g.op("Op", x, axis_i=axis)

    assert not torch.onnx.is_in_onnx_export() and torch.onnx.TensorProtoDataType.INT64 == 7
    with pytest.warns(UserWarning, match="framejit writes no ONNX; the symbolic function of 'mine::op' is not used"):
        torch.onnx.register_custom_op_symbolic("mine::op", symbolic, 11)
    torch.onnx.unregister_custom_op_symbolic("mine::op", 11)
    with pytest.raises(ValueError, match="mine"):
        torch.onnx.register_custom_op_symbolic("mine", symbolic, 11)
    with pytest.raises(NotImplementedError, match="writes no ONNX"):
        torch.onnx.export(torch.nn.Linear(1, 1), torch.ones(1), "x.onnx")
    with pytest.raises(AttributeError, match=r"symbolic_opset11' has no attribute 'squeeze': framejit writes no ONNX"):
        symbolic_opset11.squeeze  # noqa: B018


def test_a_traced_function_can_query_the_trace():
    from fxir.torchfx.experimental.proxy_tensor import get_proxy_mode
    from fxir.trace.trace import TraceMode, trace

    seen = []

    def body(x):
        seen.append(get_proxy_mode())
        return x + 1

    trace(body, [fake_like(torch.ones(2))])
    assert isinstance(seen[0], TraceMode) and get_proxy_mode() is None


def test_transformed_code_knows_its_transforms():
    seen = []

    def body(x):
        seen.append(torch._C._are_functorch_transforms_active())
        return x * 2

    torch.func.vmap(body)(torch.ones(3))
    body(torch.ones(3))
    assert seen == [True, False] and torch._C._get_tracing_state() is None


def test_gradients_are_switched_without_a_block():
    try:
        torch._C._set_grad_enabled(False)
        assert not torch.is_grad_enabled()
    finally:
        torch._C._set_grad_enabled(True)
    assert torch.is_grad_enabled()


def test_marks_of_quantisation_pass_their_input():
    from eager.ao.quantization import DeQuantStub, QuantStub

    x = torch.ones(2)
    assert QuantStub()(x) is x and DeQuantStub(qconfig="some")(x) is x and DeQuantStub("some").qconfig == "some"


def test_progress_counts_what_passes_through(capsys):
    from eager.utils.model_zoo import tqdm

    bar = tqdm("abc", desc="letters", disable=False)
    assert list(bar) == ["a", "b", "c"] and bar.n == 3 and bar.total == 3
    assert capsys.readouterr().err.endswith("letters: 100.0%\n")
    with tqdm(total=10, unit="B", disable=True) as quiet:
        quiet.update(5)
    assert quiet.n == 5 and capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["hub._get_torch_home", "jit._script_if_tracing", "jit._overload_method"])
def test_private_names_that_vision_libraries_import(name):
    module, _, last = name.partition(".")
    assert callable(getattr(getattr(torch, module), last))


def test_sizes_of_lists_may_be_annotated_for_scripts():
    from eager.jit.annotations import BroadcastingList2

    assert BroadcastingList2[int] == list[int] or BroadcastingList2[int].__origin__ is list


def test_compilation_is_supported_on_devices_with_a_code_generator():
    from dynamo.utils import is_compile_supported

    assert is_compile_supported("cpu") and is_compile_supported("cuda") == torch.cuda.is_available() and not is_compile_supported("mps")


def test_how_the_arguments_of_to_are_read():
    parse = torch._C._nn._parse_to
    x = torch.ones(2, dtype=torch.float64)
    assert parse(x) == parse(tensor=x) == (torch.device("cpu"), torch.float64, False, None)
    assert parse("cpu", torch.half, True) == (torch.device("cpu"), torch.float16, True, None)
    assert parse(None) == parse() == (None, None, False, None)
    assert parse(non_blocking=True, memory_format=torch.channels_last) == (None, None, True, torch.channels_last)
    with pytest.raises(RuntimeError, match=r"\.to\(\) does not accept copy argument"):
        parse("cpu", copy=True)
    assert torch._C._nn.gelu is torch.nn.functional.gelu
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch._C._nn.nothing  # noqa: B018
    assert torch.nn.Linear(2, 2).to(tensor=x).weight.dtype is torch.float64
    with pytest.raises(TypeError, match="float; allowed: a dtype, a device or a tensor"):
        torch.nn.Linear(2, 2).to(3.5)


def test_profilers_of_vendors_are_named_and_refuse_at_their_block():
    profiler = torch.autograd.profiler
    assert not profiler.kineto_available() and not torch.profiler.kineto_available()
    with profiler.emit_nvtx(enabled=False), profiler.emit_itt(enabled=False):
        pass
    with pytest.raises(NotImplementedError, match="emit_itt: ranges of ITT are not implemented"), profiler.emit_itt():
        pass


def test_script_modules_at_the_top():
    assert torch.ScriptModule is torch.jit.ScriptModule and torch.ScriptFunction is torch.jit.ScriptFunction


def test_types_without_tensors_are_names_to_compare_with():
    d = torch.complex32
    assert torch.chalf is d and isinstance(d, torch.dtype) and repr(d) == "torch.complex32"
    assert d.is_complex and d.itemsize == 4 and not torch.int4.is_complex and not torch.uint3.is_signed
    assert pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(torch.uint7) is torch.uint7
    assert torch.promote_types(torch.float32, d) is torch.complex64 and torch.promote_types(d, torch.float64) is torch.complex128
    x = torch.ones(2)
    for make in (lambda: torch.zeros(2, dtype=d), lambda: x.to(d), lambda: x.view(torch.int4), lambda: torch.nn.Linear(2, 2, dtype=d),
                 lambda: torch.empty(2, dtype=d, device="meta"), lambda: torch.compile(lambda t: t.to(d))(x)):  # fmt: skip
        with pytest.raises(NotImplementedError, match=r"tensors of torch\.(complex32|int4) are not implemented; allowed: bool, "):
            make()
    same = torch.compile(lambda t: t + 1 if t.dtype not in (torch.complex32, torch.int4) else t, fullgraph=True)
    assert same(x).tolist() == [2, 2]


def test_the_device_of_creation_as_a_block_and_a_decorator():
    from eager.utils._device import DeviceContext, set_device

    with DeviceContext("meta") as context:
        assert torch.ones(2).device == context.device == torch.device("meta")
    assert set_device("meta")(torch.ones)(2).device.type == "meta" and torch.ones(2).device.type == "cpu"


def test_extensions_for_libtorch_say_that_they_cannot_be_built():
    from eager.utils import cpp_extension

    assert cpp_extension.CUDA_HOME is None and cpp_extension.include_paths() == []
    makers = [cpp_extension.load, cpp_extension.load_inline, cpp_extension.CppExtension, cpp_extension.CUDAExtension]
    for make in (*makers, cpp_extension.BuildExtension.with_options(use_ninja=False)):
        with pytest.raises(NotImplementedError, match="extensions for libtorch cannot be built"):
            make("kernels")


def test_layers_have_the_bases_that_code_checks():
    nn, padding, pooling, conv = torch.nn, torch.nn.modules.padding, torch.nn.modules.pooling, torch.nn.modules.conv
    assert isinstance(nn.ZeroPad2d(1), nn.ConstantPad2d) and nn.ZeroPad2d(1).value == 0.0
    assert repr(nn.ZeroPad2d(1)) == "ZeroPad2d((1, 1, 1, 1))"
    assert repr(nn.ConstantPad1d(1, 2.0)) == "ConstantPad1d(padding=(1, 1), value=2.0)"
    for kind in ("Reflection", "Replication", "Circular"):
        base = getattr(padding, f"_{kind}PadNd")
        assert all(issubclass(getattr(nn, f"{kind}Pad{n}d"), base) for n in (1, 2, 3)) and not issubclass(nn.ZeroPad1d, base)
    assert all(issubclass(getattr(nn, f"AvgPool{n}d"), pooling._AvgPoolNd) for n in (1, 2, 3))
    assert issubclass(nn.ConvTranspose2d, conv._ConvTransposeMixin) and issubclass(nn.LazyConv2d, conv._LazyConvXdMixin)
    assert torch.equal(nn.ReflectionPad1d(1)(torch.arange(3.0)[None]), torch.tensor([[1.0, 0.0, 1.0, 2.0, 1.0]]))


def test_storages_are_named_as_files_name_them():
    from eager.serialization import location_tag, normalize_storage_type

    storage = torch.ones(2).untyped_storage()
    assert normalize_storage_type(type(storage)) is torch.UntypedStorage and location_tag(storage) == "cpu"
    assert normalize_storage_type(torch.FloatStorage) is torch.FloatStorage


def test_fakes_are_known_and_calls_leave_the_trace():
    from eager._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

    assert isinstance(fake_like(torch.ones(2)), FakeTensor) and not isinstance(torch.ones(2), FakeTensor)
    with unset_fake_temporarily():
        assert torch.ones(2).add(1).tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="FakeTensor"):
        FakeTensor(None, torch.ones(2), "cpu")


def test_names_that_models_import_resolve() -> None:
    from typing import List  # noqa: PLC0415, UP035

    from eager.hub import HASH_REGEX  # noqa: PLC0415
    from eager.jit import annotations, is_scripting  # noqa: PLC0415

    assert annotations.List is List  # noqa: UP006
    assert not is_scripting()
    found = HASH_REGEX.search("resnet18-f37072fd.pth")
    assert found is not None
    assert found.group(1) == "f37072fd"


def test_the_type_of_tensors_has_a_name_for_annotations() -> None:
    from eager import TensorType  # noqa: PLC0415

    assert TensorType.get() is TensorType.get()
    assert str(TensorType.get()) == "Tensor"
