"""Calls whose gradients in eager differ from torch 2.13's on purpose, with the reasons. test_call_gradients.py reads them."""
from __future__ import annotations

from tests.data.call_differences import Difference

GRADIENTS = [
    Difference("torch negates unsigned numbers, which wrap around", call=r"atan2\(t\('u1'", found="^values"),
    Difference("torch computes 2**-n for an integer exponent in integers, where it is 0", call=r"ldexp.*'(i4|i8)'", found="^values"),
    Difference("torch multiplies by the sign of a negative magnitude twice", call="polar", found="^values"),
    Difference("torch passes the gradient to the elements that were overwritten", call="as_strided_scatter", found="^values"),
    Difference("torch passes the gradient on unchanged although the op overwrites the value with a result without a gradient",
               call=r"logical_\w+_\(|T\.eq\(x|nextafter_"),
    Difference("two singular values are equal in float32, so that their vectors are arbitrary", call=r"svdvals|nuclear_norm",
               found="^values"),
    Difference("the matrix is singular", call=r"lu_solve", found="^values"),
    Difference("the complex numbers have nan or infinite parts", call=r"special\('c", found="^values"),
    Difference("a cast from complex numbers drops the imaginary parts of the gradient; torch keeps them", call="'c.*dtype=T.float",
               found="^values"),
    Difference("the argument is a pole or close to a pole", call="digamma|psi|log_ndtr|i1|var.*correction=5|T.prod|quantile|copysign",
               found="^values"),
    Difference("the extreme of values with a nan is the nan, which receives the gradient; torch returns nan for every element",
               call=r"(amax|amin|aminmax)\(special", found="^values"),
    Difference("the median of an empty tensor depends on no element", call=r"median\(t\('f4', 0", found="^requires_grad"),
    Difference("integers have no gradients", call="_foreach_div", found="^requires_grad"),
    Difference("eager lacks the function for complex numbers", call=r"'c.*logcumsumexp|logcumsumexp\((t|special)\('c", found="^fails"),
    Difference("an argument of a wrong type raises TypeError", call=r"\.to\(3\.5\)", found="^fails"),
]  # fmt: skip
# Functions whose backward in eager needs other operands or results unchanged than in torch: eager computes other steps.
CHANGED = frozenset("ndtr ldexp unsafe_split unsafe_chunk polar take_along_dim kron svdvals cond nuclear_norm gru".split())
