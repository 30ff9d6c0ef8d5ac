"""Which ops have a native kernel, and the C table of them.

`python -m eager.optable.native_kernels` writes `eager/native/kernels/kernel_table.h`; a test holds the file against the op
table. The C function of a kernel is `kernel_NAME`; its arity is the number of the op's parameters.
"""
from __future__ import annotations

from pathlib import Path

from eager.base.records import dataclass
from eager.optable.table import OPS
from eager.startup.places import EAGER_DIR

PATH = Path(EAGER_DIR) / "native" / "kernels" / "kernel_table.h"


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """A native kernel of an op.

    op: the op's name. function: the C function's name after `kernel_`. makes_results: answers calls that return new tensors.
    writes_target: answers calls of the in-place op, and writes its first argument.
    """

    op: str
    function: str
    makes_results: bool = True
    writes_target: bool = False


# The kernels whose loops `c_loops` prints from the scalar rules: over bools, int32 and int64 (integer_pointwise.c).
INTEGER_LOOPS = """
eq ne lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
maximum minimum add sub mul floor_divide remainder
""".split()
# The others, by file of eager/native/kernels.
_NEW = """
sum mean amax amin
vector_norm var std
softmax log_softmax softmax_backward log_softmax_backward layer_norm_backward layer_norm_backward_weight
mm bmm matmul linear
convolution conv_weight
attention attention_backward
cross_entropy cross_entropy_backward
all any
to_dtype
max_pool avg_pool avg_pool_backward adaptive_avg_pool adaptive_avg_pool_backward
index_select embedding embedding_backward gather scatter scatter_add
nonzero masked_select where
clone cat stack flip roll tril triu constant_pad_nd
full empty arange int_table float_table
index
argmax argmin topk sort cumsum
philox_uniform philox_normal philox_randint rng_state
""".split()
_OTHER_NAMES = {"native_layer_norm": "layer_norm", "div_floor": "floor_divide"}
_ALSO_IN_PLACE = "masked_fill clamp index_put index_add".split()
_ONLY_IN_PLACE = "copy fill".split()

NATIVE_KERNELS = (
    *(NativeKernel(name, name) for name in (*INTEGER_LOOPS, *_NEW)),
    *(NativeKernel(name, function) for name, function in _OTHER_NAMES.items()),
    *(NativeKernel(name, name, writes_target=True) for name in _ALSO_IN_PLACE),
    *(NativeKernel(name, name, makes_results=False, writes_target=True) for name in _ONLY_IN_PLACE),
)


def source() -> str:
    """The text of the header: the prototypes, and the rows of the table as a macro."""
    functions = dict.fromkeys(k.function for k in NATIVE_KERNELS)
    rows = [f'    {{"{k.op}", {len(OPS[k.op].schema.params)}, {int(k.makes_results)}, {int(k.writes_target)}, kernel_{k.function}}},'
            for k in NATIVE_KERNELS]  # fmt: skip
    return ("/* Made by `python -m eager.optable.native_kernels` from the op table. */\n\n"
            + "".join(f"bool kernel_{name}(PyObject *const *args, Results *results);\n" for name in functions)
            + "\n/* op, arity, whether it makes results, whether it writes a target, function */\n"
            + "#define KERNEL_ROWS \\\n" + " \\\n".join(rows) + "\n")  # fmt: skip


if __name__ == "__main__":
    PATH.write_text(source())
