"""`torch._dynamo.config`: the names that programs set, over this project's settings."""

from __future__ import annotations

from eager.config_module import Hint, Only, Setting, install

install(
    __name__,
    {
        "recompile_limit": Setting("capture_recompile_limit"),
        "cache_size_limit": Setting("capture_recompile_limit"),
        "suppress_errors": Setting("capture_suppress_errors"),
        "disable": Setting("capture_disable"),
        "automatic_dynamic_shapes": Setting("capture_automatic_dynamic"),
        "capture_scalar_outputs": Setting("capture_scalar_outputs"),
        "capture_dynamic_output_shape_ops": Setting("capture_dynamic_outputs"),
        # What capture does in any case, or what only torch's own machinery needs.
        "accumulated_recompile_limit": Hint(256),
        "accumulated_cache_size_limit": Hint(256),
        "verbose": Hint(False),
        "log_level": Hint(None),
        "dead_code_elimination": Hint(True),
        "guard_nn_modules": Hint(True),
        "replay_record_enabled": Hint(False),
        "inline_inbuilt_nn_modules": Hint(True),
        "allow_unspec_int_on_nn_module": Hint(False),
        "install_free_tensors": Hint(False),
        "skip_nnmodule_hook_guards": Hint(True),
        "optimize_ddp": Hint(True),
        "allow_rnn": Hint(False),
        "nested_graph_breaks": Hint(True),
        "numpy_default_float": Hint("float64"),
        "trace_numpy": Hint(True),
        "report_guard_failures": Hint(True),
        "cprofile": Hint(False),
        "caching_precompile": Hint(False),
        "allow_ignore_mark_dynamic": Hint(False),
        "debug_dir_root": Hint(""),
        "prefer_deferred_runtime_asserts_over_guards": Hint(False),
        "capture_func_transforms": Hint(True),
        "force_parameter_static_shapes": Hint(True),
        "force_unspec_int_unbacked_size_like_on_torchrec_kjt": Hint(False),
        "assume_static_by_default": Only(True, "compile(dynamic=True) asks for symbolic shapes from the first call"),
        "specialize_int": Only(False, "an int that changes becomes symbolic; compile(dynamic=False) keeps it constant"),
        "error_on_recompile": Only(False, 'torch.compiler.set_stance("fail_on_recompile") makes recompilation an error'),
        "fail_on_recompile_limit_hit": Only(False, "compile(fullgraph=True) makes the limit an error"),
        "compiled_autograd": Only(False, "backward graphs are compiled with their forward; the engine itself is not captured"),
    },
)
