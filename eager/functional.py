"""torch.functional: top-level functions under their older module name."""
from __future__ import annotations

from eager.functions import FUNCTIONS
from eager.nn.functional import TOP_LEVEL

_NAMES = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum istft lu "
    "meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index"
).split()
__all__ = list(_NAMES)  # noqa: PLE0605 - the package's own names

globals().update({name: value for name, value in {**FUNCTIONS, **TOP_LEVEL}.items() if name in __all__})
