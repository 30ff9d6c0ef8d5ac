"""`torch._functorch.config`: torch's flags and their effect here.

A flag is a setting of this project, or supports only its default (`_REFUSED`), or is stored without effect
(`_HINTS`). Each of the two tables gives the reason for a group of flags.
"""

from __future__ import annotations

from eager.utils._config_module import Setting, Table, hints, install, one_of, optional, refused

_REFUSED: Table = (
    ("a minimum cut selects the values that backward recomputes; torch.utils.checkpoint requests recomputation", {
        "activation_memory_budget": 1.0, "aggressive_recomputation": False, "memory_budget_pareto_dir": optional(str),
        "recompute_views": False, "visualize_memory_budget_pareto": False,
    }),
    ("kept results stay on their device; torch.autograd.graph.save_on_cpu moves them", {
        "activation_reload_prefetch": False, "enable_activation_offloading": False,
    }),
    ("backward runs in the dtypes of its forward", {"backward_pass_autocast": "same_as_forward"}),
    ("TORCH_COMPILE_DEBUG=1 writes and verifies every stage of a compilation", {
        "debug_assert": False, "debug_partitioner": False, "fake_tensor_crossref": False,
        "generate_fake_kernels_from_real_mismatches": False,
    }),
    ("capture uses fake tensors without data; capture_scalar_outputs keeps values", {
        "fake_tensor_prefer_device_type": optional(str), "fake_tensor_propagate_real_tensors": False,
    }),
    ("user-defined passes over the joint graph are not supported; pass a backend to compile()", {"joint_custom_pass": optional(object)}),
    ("hooks of saved tensors run where eager code runs them", {"saved_tensors_hooks_filtering_mode": "donated"}),
    ("custom ops receive arguments with the strides of eager code", {
        "custom_op_default_layout_constraint": one_of("needs_exact_strides", "needs_fixed_stride_order", "flexible_layout"),
    }),
    ("the cache is a folder of this machine (FRAMEJIT_CACHE_DIR), keyed by the graph", {
        "autograd_cache_allow_custom_autograd_functions": False, "bundled_autograd_cache": False, "bypass_autograd_cache_key": False,
        "enable_remote_autograd_cache": optional(str), "force_autograd_cache": False, "strict_autograd_cache": False,
    }),
    ("complex arithmetic is compiled without a wrapper", {"enable_complex_wrapper": False}),
    ("framejit runs in one process", {"_sync_decision_cross_ranks": False}),
)  # fmt: skip
_HINTS: Table = (
    ("a minimum cut over the graph selects the values that backward recomputes", {
        "activation_memory_budget_runtime_estimator": "flops", "activation_memory_budget_solver": "dp",
        "activation_offload_cpu_gpu_bw": 50.0, "activation_offload_separate_stream": False, "activation_offload_sink_wait": False,
        "ban_recompute_long_fusible_chains": True, "ban_recompute_materialized_backward": True, "ban_recompute_not_in_allowlist": True,
        "ban_recompute_reductions": True, "ban_recompute_used_far_apart": True, "max_dist_from_bw": 1000,
        "remat_using_tags_for_fwd_loss_bwd_graph": True, "treat_parameters_as_free_to_save": True,
        "unsafe_treat_script_objects_as_zero_size": False,
    }),
    ("random draws advance the same generator state as in eager code", {
        "functionalize_rng_ops": False, "graphsafe_rng_functionalization": True,
    }),
    ("graphs always have this property", {
        "autograd_cache_normalize_inputs": True, "cse": True, "decompose_custom_triton_ops": True,
        "disable_guess_zero_tangent_for_mutated_input_subclass": False, "donated_buffer": True, "fake_tensor_allow_meta": True,
        "fake_tensor_allow_unsafe_data_ptr_access": True, "force_non_lazy_backward_lowering": False,
        "guess_tangent_strides_as_outputs": True, "selective_decompose": False, "static_weight_shapes": True,
        "unlift_effect_tokens": False, "unsafe_allow_optimization_of_collectives": False, "view_replay_for_aliased_outputs": True,
    }),
    ("the picture of a graph is torch's; TORCH_COMPILE_DEBUG=1 writes graphs as text", {"torch_compile_graph_format": "svg"}),
    ("capture compares the results of a custom op with its inputs", {
        "check_custom_op_aliasing": True, "error_on_custom_op_aliasing": False,
    }),
)  # fmt: skip

install(__name__, "torch._functorch.config",
        {"enable_autograd_cache": Setting("cache_enabled"), **refused(_REFUSED), **hints(_HINTS)})  # fmt: skip
