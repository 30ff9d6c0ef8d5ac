"""`out=` for public functions whose bodies do without it."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.overlap import check_out
from eager.optable.table import write_out

TensorBase = _native.TensorBase

# functions that take `out=` in torch and are written without it
TAKE_OUT = frozenset((
    "sgn conj_physical angle polar complex var std logsumexp norm argmax argmin argsort msort mode cummax cummin "
    "logcumsumexp diff isin histc quantile nanquantile gather index_select take index_add index_copy scatter scatter_add "
    "masked_select nonzero diag tril triu roll clamp_min clamp_max hstack vstack dstack column_stack row_stack stack "
    "addmm addmv addr baddbmm mv dot vdot inner outer ger bmm chain_matmul cross renorm "
    "bernoulli multinomial lu_solve cholesky_solve cholesky_inverse cholesky matrix_power index_reduce take_along_dim "
    "scatter_reduce addbmm count_nonzero rand_like tensordot kron einsum aminmax geqrf lu_unpack nan_to_num narrow_copy "
    "ormqr qr slogdet svd triangular_solve slice_scatter nonzero_static nuclear_norm"
).split())  # fmt: skip


# functions of those that torch writes while it reads, and so refuses an `out=` that lies over itself or over an input
_BOTH = ("sgn conj_physical angle index_select scatter scatter_add scatter_reduce masked_select clamp_min clamp_max outer ger "
         "lu_solve").split()  # fmt: skip
_NOT_OVER_ITSELF = frozenset((*_BOTH, "diff", "addmm", "addr", "cholesky_solve", "addbmm"))
_NOT_OVER_INPUTS = frozenset((*_BOTH, "msort", "logcumsumexp", "gather", "index_add", "index_copy", "index_reduce", "cross", "renorm",
                              "take_along_dim", "kron"))  # fmt: skip
# functions of those that join tensors: a TypeError for an `out=` that holds no such result
_JOINING = frozenset("hstack vstack dstack column_stack row_stack stack".split())
# functions of those that torch makes of others and a copy, which an `out=` that wants a gradient may follow
_RECORDED = frozenset("conj_physical diag inner tensordot quantile nanquantile histc".split())
# functions of those whose `out=` must have the result's own dtype
EXACT_OUT = frozenset((
    "argmax argmin argsort isin aminmax geqrf lu_unpack nan_to_num narrow_copy ormqr qr slogdet svd triangular_solve nonzero_static "
    "nuclear_norm norm addmm addmv addbmm baddbmm bmm mv dot vdot inner cross diag histc index_add index_reduce index_select scatter "
    "scatter_add scatter_reduce slice_scatter gather logcumsumexp masked_select msort nanquantile quantile nonzero renorm take "
    "take_along_dim tril triu inverse"
).split())  # fmt: skip


def takes_out(name: str, fn: Callable[..., Any], exact: bool = False) -> Callable[..., Any]:
    """`fn` under a public name, with an `out=` that its result, a tensor or several, is written into; of the same dtype if `exact`."""
    differentiable = name not in _RECORDED
    joining = name in _JOINING
    itself, inputs = name in _NOT_OVER_ITSELF, name in _NOT_OVER_INPUTS

    @functools.wraps(fn)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return fn(*args, **kwargs)
        if inputs or itself:
            check_out(out, args if inputs else (), itself)
        result = fn(*args, **kwargs)
        if joining and isinstance(out, TensorBase) and not dtypes.can_cast(result.dtype, out.dtype):
            raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {scalar_name(out.dtype)}")
        return write_out(out, result, exact, differentiable)

    call.__name__ = call.__qualname__ = name
    return call
