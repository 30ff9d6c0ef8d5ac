"""`torch.nn.modules.module`: Module and the hooks of every module, under the path that model code imports."""
from eager.nn.module import (
    _EXTRA_STATE_KEY_SUFFIX,
    Module,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _IncompatibleKeys,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX", "Module", "_IncompatibleKeys", "_global_backward_hooks", "_global_backward_pre_hooks",
    "_global_buffer_registration_hooks", "_global_forward_hooks", "_global_forward_pre_hooks",
    "_global_module_registration_hooks", "_global_parameter_registration_hooks", "register_module_backward_hook",
    "register_module_buffer_registration_hook", "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip
