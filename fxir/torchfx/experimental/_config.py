"""`torch.fx.experimental._config`: flags of torch's symbolic shapes, with their meaning here."""

from __future__ import annotations

from eager.utils._config_module import Table, install, optional, refused

_REFUSED: Table = (
    ("this flag breaks torch's own compiler on purpose, for its tests", {"inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY": False}),
    ("two dimensions of equal size are one symbol until they differ", {"use_duck_shape": True}),
    ("a size that data determines stays a symbol", {
        "aggressive_guard_free_semantics": 0, "backed_size_oblivious": False, "meta_nonzero_assume_all_nonzero": False,
        "no_data_dependent_graph_break": False, "skip_dtype_check_in_meta_registrations": False,
        "soft_pending_unbacked_not_found_error": False, "symbol_guard_limit_before_specialize": optional(int),
        "unify_view_symbols_bso_meta": False,
    }),
    ("TORCH_LOGS=dynamic logs each symbol, its cause and its guards", {
        "check_shape_env_recorded_events": False, "enrich_profiler_metadata": False, "extended_debug_cpp": False,
        "extended_debug_create_symbol": optional(str), "extended_debug_current_loc": False, "extended_debug_guard_added": optional(str),
        "print_specializations": False,
    }),
    ("guards are not checked by a theorem prover", {
        "translation_validation": False, "translation_validation_no_bisect": False, "translation_validation_timeout": 600000,
    }),
)  # fmt: skip

install(__name__, "torch.fx.experimental._config", refused(_REFUSED))
