"""`torch._tensor`: the class Tensor.

`tensor` holds the class, `text` prints tensors, `torch_function` runs the `__torch_function__` protocol.
"""

from eager._tensor.tensor import Tensor as Tensor
