"""`torch.compiler.config`: torch's flags of the whole compiler; most are flags of `torch._dynamo.config` too."""

from __future__ import annotations

from typing import cast

from dynamo import config
from eager.utils._config_module import Alias, Config, Setting, Table, hints, install, optional, refused

_REFUSED: Table = (
    ("dynamic sizes of an earlier process are not kept", {
        "job_id": optional(str), "pgo_extra_read_key": optional(str), "pgo_extra_write_key": optional(str),
    }),
    ("the cache is keyed by the graph; FRAMEJIT_CACHE_DIR names another folder", {"cache_key_tag": ""}),
    ("torch._dynamo.mark_dynamic(x, dim) marks a tensor's dimension", {
        "dynamic_sources": "", "dynamic_values": "", "unbacked_sources": "",
    }),
)  # fmt: skip
_HINTS: Table = (
    ("memory of CUDA graphs is released when they are", {"force_cudagraph_gc": False}),
)  # fmt: skip
_OF_DYNAMO = (
    "accumulated_recompile_limit allow_unspec_int_on_nn_module assume_static_by_default automatic_dynamic_shapes "
    "capture_dynamic_output_shape_ops capture_scalar_outputs dynamic_shapes enable_cpp_symbolic_shape_guards "
    "fail_on_recompile_limit_hit log_file_name recompile_limit reorderable_logging_functions "
    "skip_tensor_guards_with_matching_dict_tags verbose wrap_top_frame"
)

install(__name__, "torch.compiler.config", {
    "force_disable_caches": Setting("cache_enabled", negated=True),
    **{name: Alias(cast(Config, config), name) for name in _OF_DYNAMO.split()},
    **refused(_REFUSED), **hints(_HINTS),
})  # fmt: skip
