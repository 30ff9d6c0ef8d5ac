"""torch.nn.attention: the implementations of attention that a program allows.

One kernel computes attention here, so the choice among backends changes only the reported state. Allowing no backend is an error.
"""
from eager.base.attention_backends import SDPBackend, sdpa_kernel
from eager.base.attention_backends import allowed as _cur_sdpa_kernel_backends
