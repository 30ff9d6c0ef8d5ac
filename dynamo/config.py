"""`torch._dynamo.config`: each of torch's flags, with its effect here.

A flag has one of three effects: it is a setting of this project, only its default is supported (`_REFUSED`), or its
value is stored and has no effect (`_HINTS`). Each of the two tables states the reason for a group of flags. Two
defaults differ from torch's: `suppress_errors` is True, because a fault of the compiler should cost a program its speed
and not its result (a warning reports the fault), and `enable_aot_compile` is False, because a compiled function has no
`aot_compile`.
"""

from __future__ import annotations

from eager.utils._config_module import Setting, Table, hints, install, one_of, optional, refused

_SETTINGS = {
    "recompile_limit": Setting("capture_recompile_limit"),
    "accumulated_recompile_limit": Setting("capture_accumulated_recompile_limit"),
    "error_on_recompile": Setting("capture_error_on_recompile"),
    "fail_on_recompile_limit_hit": Setting("capture_fail_on_recompile_limit"),
    "suppress_errors": Setting("capture_suppress_errors"),
    "disable": Setting("capture_disable"),
    "automatic_dynamic_shapes": Setting("capture_automatic_dynamic"),
    "assume_static_by_default": Setting("capture_assume_static"),
    "capture_scalar_outputs": Setting("capture_scalar_outputs"),
    "capture_dynamic_output_shape_ops": Setting("capture_dynamic_outputs"),
    "specialize_int": Setting("capture_specialize_int"),
    "specialize_float": Setting("capture_specialize_float"),
    "verbose": Setting("debug_full_traceback"),
    "debug_dir_root": Setting("debug_dir"),
    "repro_after": Setting("debug_repro_after", spelt=("", None), choices=(None, "dynamo", "aot")),
    "repro_level": Setting("debug_repro_level"),
    "repro_forward_only": Setting("debug_repro_forward_only"),
    "repro_ignore_non_fp": Setting("debug_repro_ignore_non_fp"),
    "repro_tolerance": Setting("debug_repro_tolerance"),
}
_REFUSED: Table = (
    ("this flag breaks torch's own compiler on purpose, for its tests", {
        "_autograd_backward_strict_mode_banned_ops": ["layout", "is_neg", "is_conj", "is_pinned"],
        "_autograd_backward_strict_mode_conditional_banned_ops": ["stride", "storage_offset", "is_contiguous"],
        "_custom_ops_profile": optional(object), "_shapes_spec": optional(str), "_unsafe_skip_fsdp_module_guards": False,
        "debug_disable_compile_counter": False, "debug_force_graph_break_on_leaf_return": False, "debug_force_nested_calls": False,
        "inject_BUILD_SET_unimplemented_TESTING_ONLY": False,
    }),
    ("compile(dynamic=False) keeps sizes constant", {"automatic_dynamic_exclusion_guard": False, "dynamic_shapes": True}),
    ("TORCH_LOGS_OUT names a file for the log", {"log_file_name": optional(str)}),
    ("a size that changes becomes an ordinary symbol", {"automatic_dynamic_shapes_mark_as": one_of("dynamic", "unbacked")}),
    ("guards are never dropped", {"guard_nn_modules": True, "skip_guards_on_constant_func_defaults": False}),
    ("numpy calls on tensors are captured in numpy's own default types; torch.compiler.disable(f) runs a function eagerly", {
        "numpy_default_complex": "complex128", "numpy_default_float": "float64", "numpy_default_int": "int64", "trace_numpy": True,
        "use_numpy_random_stream": False,
    }),
    ("generators, context managers and transforms are captured; torch.compiler.disable(f) runs a function eagerly", {
        "capture_autograd_function": True, "capture_func_transforms": True, "capture_sparse_compute": True,
        "enable_dynamo_decompositions": True, "enable_faithful_generator_behavior": True, "enable_trace_contextlib": True,
        "inline_torch_dispatch_torch_compile": True,
    }),
    ("modules are captured like functions of the program", {
        "allowed_functions_module_string_ignorelist": {
            "torch._decomp", "torch._prims", "torch._refs", "torch.distributions", "torch.testing"},
        "dont_skip_tracing": False, "inline_inbuilt_nn_modules": True, "install_free_tensors": False,
        "install_free_tensors_for_export": True, "skipfiles_inline_module_allowlist": {}, "wrap_top_frame": False,
    }),
    ("such code breaks the graph or runs eagerly", {
        "capture_profiler_record_function": False, "constant_fold_autograd_profiler_enabled": False,
        "enable_trace_load_build_class": False, "enable_trace_unittest": False, "force_compile_during_fx_trace": False,
        "trace_autograd_ops": False,
    }),
    ("a function without tensor ops is not compiled", {"allow_empty_graphs": False}),
    ("every op that eager code has is captured", {
        "fake_tensor_disable_inference_mode": True, "only_allow_pt2_compliant_ops": False, "prepare_freezing": False,
        "raise_on_unsafe_aot_autograd": False,
    }),
    ("sizes of parameters are constants of the compiled code; torch._dynamo.mark_dynamic(x, dim) marks a tensor's dimension", {
        "force_nn_module_property_static_shapes": True, "force_parameter_static_shapes": True,
        "force_unspec_int_unbacked_size_like_on_torchrec_kjt": False,
    }),
    ("subclasses of Tensor are captured where they define __torch_function__; torch.compiler.disable(f) runs a function eagerly", {
        "nontraceable_tensor_subclasses": set(), "traceable_tensor_subclasses": set(),
    }),
    ("side effects of a captured program are always replayed", {
        "replay_side_effects": True, "side_effect_replay_policy": "info", "skip_fwd_side_effects_in_bwd_under_checkpoint": False,
    }),
    ("a function is compiled at its first call; call it eagerly before compile()", {"minimum_call_count": 1}),
    ("nested compiled regions and leaf functions have their own graphs", {
        "enable_invoke_subgraph_regional_compile": False, "inline_invoke_subgraph": False, "inline_single_use_invoke_subgraph": True,
        "leaf_function_check_escaped_gradients": False, "leaf_function_validate_outputs": False,
    }),
    ("there is no aot_compile of a compiled function; torch.export.save writes a program", {"enable_aot_compile": False}),
    ("a function that reaches the recompile limit runs eagerly with all that it calls", {
        "skip_code_recursive_on_recompile_limit_hit": True,
    }),
    ("an integer attribute of a module is a constant of the compiled code; keep an attribute that changes in a tensor", {
        "allow_unspec_int_on_nn_module": False,
    }),
    ("a call that prints or logs breaks the graph, so that its output keeps its place", {
        "ignore_logging_functions": set(), "reorderable_logging_functions": set(),
    }),
    ("a size that mark_dynamic names and the program makes constant is an error", {"allow_ignore_mark_dynamic": False}),
    ("an assertion on data is checked when the compiled code runs", {
        "do_not_emit_runtime_asserts": False, "prefer_deferred_runtime_asserts_over_guards": False,
        "rewrite_assert_with_torch_assert": True,
    }),
    ("compiled code is not run beside eager code; compare the results in a test", {
        "fake_tensor_cache_crosscheck_enabled": False, "graph_deduplication_lint": False, "same_two_models_use_fp64": True,
        "verify_correctness": False,
    }),
    ("backward graphs are compiled with their forward; the engine itself is not captured", {
        "compiled_autograd": False, "compiled_autograd_kwargs_override": {},
    }),
    ("a compiled function is not a file; torch.export.save writes a program", {"caching_precompile": False, "strict_precompile": False}),
    ("tlparse, cProfile and record files are torch's; TORCH_LOGS=dynamo reports compilations", {
        "cprofile": False, "dynamo_profiler": optional(bool, str, default=False), "generate_pycode": False,
        "log_graph_in_out_metadata": False, "record_compile_time_instruction_count": False, "replay_record_enabled": False,
    }),
    ("compile(backend=..., options=...) sets them per function", {
        "debug_backend_override": "", "debug_dynamo_config_override": "", "debug_inductor_config_override": "",
    }),
    ("an error that torch raises stays an error", {
        "error_on_dynamo_callback_in_fullgraph_compiled_code": False, "error_on_nested_fx_trace": True, "error_on_nested_jit_trace": True,
        "raise_on_ctx_manager_usage": True,
    }),
)  # fmt: skip
_HINTS: Table = (
    ("dynamic sizes of an earlier process are not kept", {
        "automatic_dynamic_local_pgo": True, "automatic_dynamic_remote_pgo": optional(bool),
    }),
    ("every object that compiled code reads is guarded by a native check, which costs a pointer comparison", {
        "assume_dunder_attributes_remain_unchanged": True, "enable_cpp_framelocals_guard_eval": True, "enable_cpp_guard_manager": True,
        "enable_cpp_symbolic_shape_guards": False, "guard_nn_modules_using_dict_tags": True,
        "invalidate_compile_context_weakrefs": optional(bool), "issue_3_13_0_warning": True,
        "max_saved_pointers_for_recursive_dict_tags_check": 256, "report_guard_failures": True, "skip_fsdp_guards": True,
        "skip_nnmodule_hook_guards": True, "skip_no_tensor_aliasing_guards_on_parameters": True,
        "skip_tensor_guards_with_matching_dict_tags": True, "use_lamba_guard_for_object_aliasing": True,
        "use_recursive_dict_tags_for_guards": False,
    }),
    ("creating a Parameter is captured in either case", {"graph_break_on_nn_param_ctor": True}),
    ("a graph break in a called function resumes inside that function in either case", {"nested_graph_breaks": False}),
    ("recurrent layers are captured in either case", {"allow_rnn": False}),
    ("framejit runs in one process", {
        "enable_compiler_collectives": False, "enable_p2p_compilation": False,
        "optimize_ddp": one_of(True, False, "ddp_optimizer", "python_reducer", "python_reducer_without_compiled_forward",
                                "no_optimization"),
        "optimize_ddp_lazy_compile": False, "skip_torchrec": True,
    }),
    ("equal subgraphs are compiled once by the cache", {"track_nodes_for_deduplication": False, "use_graph_deduplication": False}),
    ("a CUDA graph copies its inputs", {
        "cudagraph_backend_keep_input_mutation": False, "cudagraph_backend_support_input_mutation": False,
    }),
    ("graphs without effect on the result are always removed", {"dead_code_elimination": optional(str)}),
    ("it selects records of torch's metrics", {
        "fake_tensor_cache_enabled": True, "log_compilation_metrics": True, "pt2_compile_id_prefix": optional(str),
        "record_runtime_overhead": True,
    }),
    ("it steers when torch prints a GraphModule; here it is printed when its code is read", {"use_lazy_graph_module": True}),
    ("a compilation does not change the settings of the garbage collector", {"run_gc_after_compile": True}),
)  # fmt: skip
_ENVIRONMENT = {
    "TORCH_COMPILE_OVERRIDE_BACKENDS": "debug_backend_override",
    "TORCH_COMPILE_OVERRIDE_INDUCTOR_CONFIGS": "debug_inductor_config_override",
    "TORCH_COMPILE_OVERRIDE_DYNAMO_CONFIGS": "debug_dynamo_config_override",
    "TORCH_COMPILE_REPLAY_RECORD": "replay_record_enabled",
    "TORCH_COMPILER_COLLECTIVES": "enable_compiler_collectives",
}  # environment variables whose names differ from the names of their flags

_SECOND_NAMES = {
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
    "cache_size_limit": "recompile_limit",
    "fail_on_cache_limit_hit": "fail_on_recompile_limit_hit",
    "ignore_logger_methods": "ignore_logging_functions",
    "skip_code_recursive_on_cache_limit_hit": "skip_code_recursive_on_recompile_limit_hit",
}

_config = install(__name__, "torch._dynamo.config", {**_SETTINGS, **refused(_REFUSED), **hints(_HINTS)}, _SECOND_NAMES)
_config.read_environment(("TORCHDYNAMO_", "TORCH_DYNAMO_"), _ENVIRONMENT)
