"""Function transforms: gradients, tangents and batches as functions of functions, in any composition.

`level` defines a transform's tensors and how an op call passes through nested transforms. Reverse mode is in `reverse`
(with `lifting`), forward mode in `forward` and `push`, vmap in `batching`, `mapping` and the rule modules. `jacobians`,
`functional`, `forward_ad` and `finite_differences` are made of these. `eager.func` and `eager.autograd` show them under
torch's names.
"""
from eager.transforms import custom  # registers custom functions under vmap
