"""Generated calls whose outcome differs from torch 2.13, with the reasons.

compare_calls.py and test_generated_calls.py read this list.
"""
from __future__ import annotations

from tests.data.call_differences import Difference

KNOWN: list[Difference] = [
    Difference("the generated matrices are singular: the digits of the results are rounding errors", call=
               r"slogdet|logdet|pinv|cond\(|tensorsolve|linalg\.lu\(|matrix_power\(.*-\d|matrix_rank|cholesky_ex|solve|svd|inv",
               found=r"^values|^(no error|\d results).*(singular|is zero)"),
    Difference("torch's top-level embedding_bag takes offsets of two dims and reads undefined memory; eager refuses them",
               call=r"T\.embedding_bag\(", found="1D Tensor"),
    Difference("eager's recurrence is exact at 0.5 for any degree; torch's cosine loses digits at a large degree",
               call=r"chebyshev.*special", found="^values"),
    Difference("eager's recurrence in float64 overflows to an infinity; torch's recurrence in float32 computes inf - inf",
               call=r"hermite.*special", found="^values"),
    Difference("torch accepts a fraction as the index of a device", call=r"\.to\(2\.5\)"),
    Difference("torch calls MKL, which refuses an empty batch of transforms", call=r"T\.fft\.\w+\(t\('f4', 0", found="MKL FFT error"),
    Difference("torch attempts a view of a layout that needs a copy, and raises", call=r"kron|take_along_dim",
               found="view size is not compatible"),
    Difference("torch refuses most writes to expanded targets and does the others in an undefined order; eager refuses all",
               call=r"expand.*\.(tril_|triu_|addmv_|baddbmm_)|threshold_\(.*expand", found="more than one element"),
    Difference("torch addresses memory outside of an empty or an expanded target; eager raises and names the index",
               call=r"index_copy|index_fill|as_strided_scatter", found="setStorage|reach element"),
    Difference("torch does not check the statistics of an empty input", call=r"batch_norm\(t\('f4', 3, 0\)", found="running_mean"),
    Difference("torch converts the tensor of positions to another dtype first", call=r"tensor_split\(.*special",
               found="cannot be represented"),
    Difference("the result is undefined for edges and boundaries that do not increase", call=r"bucketize|searchsorted|histogram",
               found="^values"),
    Difference("the order of writes to overlapping positions is undefined", call=r"as_strided_scatter", found="^values"),
    Difference("factorisations come row-major; torch leaves them column-major, as LAPACK does", found="^strides",
               call=r"\.(svd|qr)\(|matrix_power\(.*-\d"),
    Difference("a copy of a tensor with gaps is dense; torch keeps the gaps", call=r"slice_scatter\(.*::2", found="^strides"),
    Difference("torch returns an empty input itself, with the strides that numpy gave it", call=r"shuffle\(", found=r"^strides.* \[0, 0"),
    Difference("torch's empty list of positions is column-major", call=r"(nonzero|argwhere|where)\(t\('..', (0, |3, 0)", found="^strides"),
    Difference("an option is nan or infinite: the branch that torch takes is arbitrary", found="^values",
               call=r"=-?nan|=-?inf|, nan\)|, inf\)|zeta\(inf"),
    Difference("eager returns nan if any operand of the transform or difference is not finite", call=r"(fft|gradient).*special",
               found="^values"),
    Difference("torch's top-level losses accept reduction as a number and treat an unknown number as 'none'", call=r"reduction=-\d",
               found="^shape"),
    Difference("eager computes halves in float32 and rounds once", call=r"'(bf|f2)'", found="^values"),
    Difference("torch's median reads beyond the memory of an expanded tensor", call=r"median\(.*expand", found="^values"),
    Difference("losses of integers: torch's mean refuses some and wraps in others", call=r"hinge_embedding|bilinear", found="^dtype"),
    Difference("gelu of an infinity is the limit; torch returns nan", call=r"gelu\(special", found="^values"),
    Difference("trigamma within 1e-3 of a pole, and xlog1py with a bool", call=r"polygamma|xlog1py", found="^values"),
    Difference("eager computes a conjugate immediately", call=r"T\.conj\(", found="^memory"),
    Difference("torch passes _stacklevel to range(); eager ignores it", call=r"_stacklevel=(1.5|None)"),
    Difference("None stands for the default memory format, as in torch's other methods", call=r"contiguous\(memory_format=None\)"),
    Difference("both factorise a singular matrix; torch then refuses the factor by a flag of LAPACK that depends on rounding",
               call=r"lu_factor\(.*expand"),
    Difference("an empty list of dims means all, as in sum; torch's kernel fails at its own broadcast", call=r"logsumexp\(.*, \[\]\)"),
    Difference("torch's schema declares this out=, but its argument parser refuses it", call=r"T\.remainder\(0\.5, .*out="),
    Difference("eager accepts True as 1 in the sizes of parts", call=r"T\.split\(.*, True\)"),
    Difference("eager's in-place function is the method, whose tensor parameter is self", call=r"T\.detach_\(input="),
    Difference("eager checks reduction before it computes the loss; torch fails while it formats its error", found="^ValueError",
               call=r"_loss\(.*reduction=1\)"),
    Difference("both ranks are wrong, and torch reports the other rank first",
               call=r"T\.histogramdd\(t\('f4'\), \[|householder_product\(.*, t\('f4'\)\)"),
    Difference("diff of order 0 is a view of its input", call=r"diff\(.*n=0", found="^memory"),
]  # fmt: skip

