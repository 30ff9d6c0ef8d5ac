"""Why a name of torch 2.13 is not here: one table of reasons, and the errors that quote them.

Owns the reasons, by pattern over torch's full name, and how a missing module or attribute is worded. A name that torch
lacks too has no reason. Standard library only.
"""
from __future__ import annotations

import importlib
import opcode
import re
import sys
import types
from collections.abc import Callable
from importlib.machinery import PathFinder, SourceFileLoader
from typing import Any, ClassVar, Final, NoReturn

from eager.startup import first_use
from eager.startup.torch_names import RENAMED

# Reason -> regular expressions over the full name. The first that matches holds.
_TABLE: Final[tuple[tuple[str, str], ...]] = (
    ("quantization is not part of this project; weights can be kept in float16, bfloat16 or the 8-bit floats",
     r"torch\.(quantization|ao|backends\.(quantized|xnnpack))(\..*)?|torch\.nn\.(quantized|qat|quantizable|intrinsic)(\..*)?|"
     r"torch\.(q?int8|qu?int\w+|quint\w+|qscheme|quantize\w*|quantized_\w+|q_\w+|int_repr|dequantize|empty_quantized|fbgemm_\w+|"
     r"choose_qparams\w+|fused_moving_avg\w+|ops\.quantized(\..*)?)|torch\.Tensor\.(q_\w+|qscheme|int_repr|dequantize)|torch\.bits?\w*"),
    ("nested tensors are not part of this project; a padded tensor with a mask holds sequences of several lengths",
     r"torch\.nested(\..*)?|torch\.Tensor\.to_padded_tensor"),
    ("masked tensors are not part of this project; torch.where and masked_fill take masks", r"torch\.masked(\..*)?"),
    ("TorchScript is not part of this project; torch.compile makes code fast, torch.export saves graphs",
     r"torch\._C\._(jit|onnx|te|graph)_?\w*|torch\.(AliasDb|AnyType|Argument|ArgumentSpec|AwaitType|Benchmark\w+|Block|BoolType|BufferDict|CallStack|Capsule|ClassType|Code|"
     r"CompilationUnit|CompleteArgumentSpec|ComplexType|ConcreteModule\w+|DeepCopyMemoTable|DeserializationStorageContext|DeviceObjType|"
     r"DictType|EnumType|ErrorReport|ExecutionPlan|FileCheck|FloatType|FunctionSchema|FutureType|Gradient|Graph\w*|IODescriptor|"
     r"InferredType|IntType|InterfaceType|JITException|ListType|LiteScriptModule|LockingLogger|ModuleDict|Node|NoneType|NoopLogger|"
     r"NumberType|OperatorInfo|OptionalType|ParameterDict|PyObjectType|PyTorchFileWriter|RRefType|Script\w+|SerializationStorageContext|"
     r"StaticModule|StreamObjType|StringType|Sym\w+Type|ThroughputBenchmark|TracingState|TupleType|Type|UnionType|Use|Value|"
     r"AggregationType|AVG|SUM|fork|wait|import_ir_module\w*|merge_type_from_type_comment|parse_\w+|unify_type_list|init_num_threads)|"
     r"torch\.jit(\..*)?|torch\.(package|nativert|fx\.graph_module\.reduce_package_graph_module)(\..*)?|"
     r"torch\.utils\.(jit|mobile_optimizer|bundled_inputs|model_dump|throughput_benchmark|ThroughputBenchmark|show_pickle)(\..*)?"),
    ("framejit runs in one process; torch.distributed.is_available() is False",
     r"torch\.(distributed|_distributed\w*|_C\._?(distributed|c10d)\w*)(\..*)?|torch\.nn\.parallel(\..*)?|torch\.cuda\.(nccl|comm)(\..*)?|torch\.(Tensor\.)?is_distributed|"
     r"torch\.batch_norm_(stats|elemt|update_stats|gather_stats\w*|backward_\w+)"),
    ("this device is not supported; there are cpu and cuda",
     r"torch\.(xpu|mps|mtia|backends\.(mps|mkl|miopen|cusparselt|kleidiai|nnpack|xeon|python_native)|is_vulkan_available|miopen_\w+|"
     r"mkldnn_\w+|utils\.(mkldnn|xpu|backend_registration|rename_privateuse1_backend|generate_methods_for_privateuse1_backend)|"
     r"(get|set|is)_autocast_(ipu|xla)_\w+|version\.rocm)(\..*)?|torch\.(Tensor|nn\.Module|fx\.GraphModule|UntypedStorage)\.(ipu|mtia|xpu|hpu|"
     r"is_hpu|mps|to_mkldnn)"),
    ("CUDA goes through CuPy and Triton, which have no such call",
     r"torch\.cuda(\..*)?|torch\.backends\.(cuda|cudnn)(\..*)?|torch\.cudnn_\w+|torch\.accelerator(\..*)?|torch\.(AcceleratorError|"
     r"Tensor\.record_stream|cuda\.Event\.\w+|autograd\.profiler\.\w*nvprof\w*|profiler\.itt)"),
    ("C++ extensions are not part of this project; torch.library.custom_op adds an op, and Triton kernels can be called",
     r"torch\.(cpp|classes|nn\.cpp)(\..*)?|torch\.utils\.(cpp_extension|cpp_backtrace|get_cpp_backtrace|hipify|file_baton|cmake_prefix_path|"
     r"collect_env)(\..*)?"),
    ("framejit writes no ONNX", r"torch\.onnx(\..*)?"),
    ("data pipes are not part of this project, and torch deprecates them; Dataset and IterableDataset hold data",
     r"torch\.utils\.data\.(datapipes|graph|graph_settings|backward_compatibility)(\..*)?|torch\.utils\.data\.(\w*DataPipe|DataChunk|"
     r"argument_validation|functional_datapipe|\w*deterministic|guaranteed_\w+|runtime_validation\w*)"),
    ("sparse tensors have only the layouts and methods that torch.sparse lists here",
     r"torch\.sparse(\..*)?|torch\.(sspaddmm|saddmm|resize_as_sparse_|\w+_indices_copy|indices_copy|values_copy)|"
     r"torch\.Tensor\.(smm|sspaddmm|sparse_\w+|resize_as_sparse_)"),
    ("ops are chosen by device and mode, not by dispatch key", r"torch\.\w*(DispatchKey|DispatchKeyGuard)\w*|torch\.overrides\.\w+|"
     r"torch\.utils\.swap_tensors"),
    ("exported programs have here what torch.export lists; passes and archives of torch's own are not part of this project",
     r"torch\.export(\..*)?"),
    ("this is a part of torch's own compiler; programs use torch.compile, torch._dynamo and torch.fx as their documents list them",
     r"torch\._dynamo\.(GenerationTracker|TensorifyState|allow_c_slot|aot_compile\w*|bytecode_\w+|cache_size|callback|compiled_autograd|"
     r"comprehension_graph_break|comptime|convert_frame|create_parameter_op|current_scope_id|debug_utils|decorators|device_interface|"
     r"disable_nested_graph_breaks|distributed|dont_skip_tracing|dynamo_profiler|eval_frame|external_utils|funcname_cache|functional_export|"
     r"[gs]et_recursion_limit|graph_\w+|hooks|is_dynamo_disable_recursive|is_inductor_supported|logging|metrics_context|"
     r"mutation_guard|on_compile_\w+|output_graph|override_\w+|package|patch_dynamo_config|pgo|polyfills|register_hook_\w+|replay\w*|"
     r"reset_code|reset_code_state|reset_frame_count|reset_recompile_user_contexts|resume_execution|side_effects|source|step_unsupported|"
     r"symbolic_convert|trace_rules|types|variables)(\..*)?|torch\._dynamo\.(utils|testing|exc|backends)\.[\w.]+|torch\._functorch\.(aot_autograd|partitioners)\.\w+|"
     r"torch\._inductor\.(CompiledArtifact|analysis|aot_compile|aoti_\w+|cache_key|codecache|codegen|compile|compile_fx|compile_worker|"
     r"config_comms|cpp_builder|cpu_vec_isa|cudagraph_\w+|custom_graph_pass|dtype_propagation|exc|freezing_utils|fx_passes|inductor_prims|"
     r"ir|lowering|graph|scheduler|metrics|ops_handler|output_code|remote_cache|runtime|shape_propagation|standalone_compile|"
     r"test_operators|triton_bundler|utils|virtualized)(\..*)?|torch\.compiler\.(CacheInfo|NestedCompileRegionOptions)|"
     r"functorch\.(dim|einops|experimental|_src)(\..*)?|functorch\.compile\.\w+"),
    ("torch's own compiler passes are not part of this project; the graph is passed to a backend of yours, or through fxir.ir.passes",
     r"torch\.fx(\..*)?|torch\.compiler\.config(\..*)?"),
    ("this part of torch's profiler is not part of this project; torch.profiler.profile records ops and regions",
     r"torch\.profiler(\..*)?|torch\.autograd\.(profiler\w*)(\..*)?|torch\.(monitor|utils\.(benchmark|viz|debug_log))(\..*)?|"
     r"torch\.DisableTorchFunction\w*"),
    ("the storages and files of torch are read and written by torch.load and torch.save; this part of their machinery is missing",
     r"torch\.(serialization|storage|multiprocessing|utils\.serialization|UntypedStorage|from_file)(\..*)?"),
    ("torch.func.functional_call and stack_module_state do this",
     r"torch\.func\.(make_functional\w*|FunctionalModule\w*|combine_state\w+)"),
    ("sizes that data determines are symbols of the compiler; eager code has numbers", r"torch\.sym_\w+"),
    ("this is a part of torch's own machinery that programs do not call",
     r"torch\.(FatalError|autograd\.(gradcheck|cpp_function|function|variable|graph|grad_mode)(\.\w+)?|autograd\.(NestedIOFunction|enforce_grad_layout_policy)|"
     r"numa|nn\.backends|utils\.(hooks|backcompat|set_module|checkpoint)|amp\.autocast_mode|return_types|"
     r"torch_version|quasirandom|signal\.windows\.windows|nn\.attention|nn\.utils\.spectral_norm|nn\.modules\.(linear_cross\w+|LinearCross\w+)|optim\.(swap_in\w+|\w+\.[a-z]+)|random|"
     r"thread_safe_generator|utils\.deterministic|fft\.Tensor|func\.rearrange|optim\.Optimizer)(\..*)?|torch\.nn\.functional\.(DType|"
     r"TYPE_CHECKING|assert_int_or_pair|grad)|torch\.\w+\.T_destination|torch\.nn\.Module\.T_destination|torch\.dtype\.abbr|"
     r"torch\.device\.\w+|torch\.Generator\.\w+|torch\.Tensor\.(_module_load|module_load|const_data_ptr|map2_|name|reinforce|grad_dtype|"
     r"index)|torch\.cpu\.[\w.]+|torch\.(set_warn_always|is_warn_always_enabled|set_flush_denormal|has_\w+|set_autocast_cpu_enabled|nn\.parallel\.\w+)"),
    ("this function is not implemented; please report the program that needs it",
     r"torch\.(nn\.(LinearCrossEntropyOptions|functional\.(\w*[a-z]Type|\w*grouped_mm|scaled_mm))|embedding_renorm_|native_norm|"
     r"Tensor\.chalf)"),
    ("fake tensors are made while calls are captured; tensors on device='meta' have a shape and no data, and torch.export and "
     "torch.fx.experimental.proxy_tensor.make_fx trace with fakes", r"torch\._subclasses(\..*)?"),
    ("torch.testing has assert_close and make_tensor; the helpers of torch's own tests are missing", r"torch\.testing\._internal(\..*)?"),
    ("names with an underscore are private to torch; framejit has only the widely used private names", r"torch\.(\w+\.)*_(?!_)\w*(\..*)?"),
)  # fmt: skip
_IMPORT_FROM: Final = opcode.opmap["IMPORT_FROM"]
METHODS: Final = frozenset(
    "chalf const_data_ptr dequantize grad_dtype index int_repr ipu is_distributed map2_ module_load mtia name "
    "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme record_stream reinforce "
    "resize_as_sparse_ smm sparse_resize_ sparse_resize_and_clear_ sspaddmm to_mkldnn to_padded_tensor xpu".split()
)  # of torch's Tensor


def reason(name: str) -> str | None:
    """Why `name`, such as "torch.quantization.quantize", is not here; None for a name that no pattern knows."""
    return next((why for why, pattern in _TABLE if re.fullmatch(pattern, name)), None)  # compiled at first use


def shown(torch_name: str) -> str:
    """The name as the program at hand writes it: `torch.nn` under the alias, else `eager.nn`."""
    is_alias = sys.modules.get("torch") is sys.modules.get("eager")
    return torch_name if is_alias or not torch_name.startswith("torch") else torch_name.replace("torch", "eager", 1)


def refuse(module: str, name: str, importer: types.FrameType) -> NoReturn:
    """Raise the error for a missing attribute of the module that torch calls `module`.

    importer: the frame that reads the attribute. Raises: ImportError if it runs `from module import name`, else AttributeError.
    """
    why = reason(f"{module}.{name}")
    if importer.f_code.co_code[importer.f_lasti] == _IMPORT_FROM and why:
        raise ImportError(f"cannot import name {name!r} from {shown(module)!r}: {why}", name=shown(module))
    raise AttributeError(f"module {shown(module)!r} has no attribute {name!r}" + (f": {why}" if why else ""), name=name)


def module_error(module: str, imported: str) -> ModuleNotFoundError:
    """The error for a missing module that torch calls `module`. imported: the name in the import statement."""
    why = reason(module)
    return ModuleNotFoundError(f"No module named {imported!r}" + (f": {why}" if why else ""), name=imported)


def missing(name: str) -> NoReturn:
    """Raise NotImplementedError: a call of `name`, a full name of torch's, cannot be answered."""
    raise NotImplementedError(f"{name}: {reason(name)}")


class AbsentMethod:
    """Stands in a class for a method that only torch has: an AttributeError with the reason."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, obj: Any, cls: type) -> NoReturn:
        why = reason(f"torch.{cls.__name__}.{self.name}") or reason(f"torch.Tensor.{self.name}")
        raise AttributeError(f"{cls.__name__!r} object has no attribute {self.name!r}: {why}", name=self.name)


class OwnLoader(SourceFileLoader):
    """Loads a module of ours.

    If torch has a module of that name, the module gets a `__getattr__` that states the reason for a name that is not here.
    """

    loaded: ClassVar[Callable[[types.ModuleType], None] | None] = None  # called with each module, after its code ran

    def __init__(self, fullname: str, path: str, torch_name: str | None) -> None:
        super().__init__(fullname, path)
        self._torch_name = torch_name

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        if self._torch_name is not None and type(sys.modules[module.__name__]) is types.ModuleType:  # no module of settings
            own = module.__dict__.get("__getattr__")
            if getattr(own, "__module__", None) != __name__:  # a package's own finder is kept
                module.__dict__["__getattr__"] = attribute_finder(module, self._torch_name, own)
            first_use.list_names(module)
        if OwnLoader.loaded is not None:
            OwnLoader.loaded(module)


def attribute_finder(module: types.ModuleType, torch_name: str, own: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """The `__getattr__` of a module: finds a name of `first_use`, a submodule not imported yet, or raises the reason."""
    folders = getattr(module, "__path__", None)

    def __getattr__(name: str) -> Any:  # noqa: N807 - its role
        if own is None and name.startswith("__"):  # the import system reads `__path__` of every module
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name)
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                if name.startswith("__"):
                    raise
        if first_use.has(module.__name__, name):
            found = module.__dict__[name] = first_use.find(module.__name__, name)
            return found
        path = RENAMED.get(f"{torch_name}.{name}")
        if path is None and folders is not None and not name.startswith("_"):
            own_path = f"{module.__name__}.{name}"
            path = own_path if PathFinder.find_spec(own_path, folders) is not None else None
        if path is not None:
            found = module.__dict__[name] = importlib.import_module(path)
            return found
        refuse(torch_name, name, sys._getframe(1))

    return __getattr__
