"""`torch._functorch.config`: the names that programs set, over this project's settings."""

from __future__ import annotations

from eager.config_module import Hint, Only, Setting, install

_RECOMPUTED = "what backward recomputes is decided by a minimum cut; torch.utils.checkpoint asks for recomputation"

install(
    __name__,
    {
        "enable_autograd_cache": Setting("cache_enabled"),
        # What is so in any case, or what only torch's own machinery needs.
        "functionalize_rng_ops": Hint(False),
        "fake_tensor_allow_meta": Hint(True),
        "decompose_custom_triton_ops": Hint(True),
        "static_weight_shapes": Hint(True),
        "treat_parameters_as_free_to_save": Hint(True),
        "cse": Hint(True),
        "bundled_autograd_cache": Hint(False),
        "strict_autograd_cache": Hint(False),
        "autograd_cache_normalize_inputs": Hint(True),
        "view_replay_for_aliased_outputs": Hint(True),
        "donated_buffer": Hint(True),
        "graphsafe_rng_functionalization": Hint(True),
        "fake_tensor_allow_unsafe_data_ptr_access": Hint(True),
        "recompute_views": Hint(False),
        "max_dist_from_bw": Hint(1000),
        "ban_recompute_used_far_apart": Hint(True),
        "ban_recompute_long_fusible_chains": Hint(True),
        "ban_recompute_materialized_backward": Hint(True),
        "ban_recompute_not_in_allowlist": Hint(True),
        "ban_recompute_reductions": Hint(True),
        "force_non_lazy_backward_lowering": Hint(False),
        "check_custom_op_aliasing": Hint(True),
        "error_on_custom_op_aliasing": Hint(True),
        "activation_memory_budget": Only(1.0, _RECOMPUTED),
        "aggressive_recomputation": Only(False, _RECOMPUTED),
        "enable_activation_offloading": Only(False, "kept results stay on their device; torch.autograd.graph.save_on_cpu moves them"),
        "backward_pass_autocast": Only("same_as_forward", "backward runs in the dtypes of its forward"),
        "debug_assert": Only(False, "TORCH_COMPILE_DEBUG=1 writes and verifies every stage of a compilation"),
        "debug_partitioner": Only(False, "TORCH_COMPILE_DEBUG=1 writes the forward and the backward graph"),
        "fake_tensor_propagate_real_tensors": Only(False, "capture runs on fakes; capture_scalar_outputs keeps values"),
        "joint_custom_pass": Only(None, "passes of the user's own over the joint graph"),
        "saved_tensors_hooks_filtering_mode": Only("donated", "hooks of saved tensors run where eager code runs them"),
        "custom_op_default_layout_constraint": Only("needs_exact_strides", "custom ops are given the strides of eager code"),
    },
)
