"""Where eager's gradients differ from torch 2.13's on purpose, with the reason. Read by test_call_gradients.py."""
from __future__ import annotations

from tests.data.call_differences import Difference

GRADIENTS = [
    Difference("torch negates unsigned numbers, which wrap around", call=r"atan2\(t\('u1'", found="^values"),
    Difference("torch computes 2**-n of an integer exponent as an integer, which is 0", call=r"ldexp.*'(i4|i8)'", found="^values"),
    Difference("torch multiplies by the sign of the magnitude once more where it is negative", call="polar", found="^values"),
    Difference("torch gives the gradient to the elements that were overwritten", call="as_strided_scatter", found="^values"),
    Difference("torch leaves the gradient as it is where the value is replaced by what has none",
               call=r"logical_\w+_\(|T\.eq\(x|nextafter_"),
    Difference("two singular values are equal in float32: their vectors are any", call=r"svdvals|nuclear_norm", found="^values"),
    Difference("a singular matrix", call=r"lu_solve", found="^values"),
    Difference("complex numbers with nan or infinite parts", call=r"special\('c", found="^values"),
    Difference("a cast from complex numbers drops the imaginary parts of the gradient once, torch never does", call="'c.*dtype=T.float",
               found="^values"),
    Difference("a pole, or a number beside it", call="digamma|psi|log_ndtr|i1|var.*correction=5|T.prod|quantile|copysign", found="^values"),
    Difference("the extreme of what holds a nan is the nan: the gradient goes there; torch makes it nan everywhere",
               call=r"(amax|amin|aminmax)\(special", found="^values"),
    Difference("no number comes of nothing", call=r"median\(t\('f4', 0", found="^wants"),
    Difference("integers want no gradients", call="_foreach_div", found="^wants"),
    Difference("not implemented for complex numbers", call=r"'c.*logcumsumexp|logcumsumexp\((t|special)\('c", found="^fails"),
    Difference("a wrong argument is a TypeError", call=r"\.to\(3\.5\)", found="^fails"),
]  # fmt: skip
# Operands or results that backward needs here as they were, and in torch not: computed in fewer or other steps.
CHANGED = frozenset("ndtr ldexp unsafe_split unsafe_chunk polar take_along_dim kron svdvals cond nuclear_norm gru".split())
