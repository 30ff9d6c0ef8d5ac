"""Calls whose outcome in eager differs from torch 2.13 on purpose, with the reasons.

compare_calls.py and test_calls.py read this list.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """A reason (`why`) and the calls that it excuses. An empty pattern matches every call.

    call: pattern of the call's text. torch: pattern of the text of torch's error; None accepts any outcome.
    found: pattern of the description of the difference.
    """

    why: str
    call: str = ""
    torch: str | None = None
    found: str = ""

    def covers(self, text: str, theirs: Any, found: str) -> bool:
        error = theirs if isinstance(theirs, dict) and "error" in theirs else None
        raised = self.torch is None or (error is not None and bool(re.search(self.torch, error["text"])))
        return raised and bool(re.search(self.call, text)) and bool(re.search(self.found, found))


DIFFERENCES = [
    Difference("bags without elements are zeros; torch makes their offsets by an arange of step 0",
               call=r"embedding_bag\(T\.empty\(2,0", torch="step must be nonzero"),
    Difference("torch has no kernel for the dtype; eager's rule serves every dtype", found="^no error|^[0-9]+ results",
               torch="not implemented for|[Uu]nsupported (?!operation)|not support|not currently supported|only supports"),
    Difference("eager has no complex32: float16 with complex numbers is complex64", found="complex32"),
    Difference("torch multiplies by the default alpha = 1, which turns an infinite part into nan; numpy only adds",
               call=r"special\('c", found="^values"),
    Difference("torch requires equal dtypes of input and out= here; eager casts if the category allows it", found="^no error",
               torch="^(Found|Expected) (the )?dtype"),
    Difference("eager fails one check earlier or later, with another subclass of RuntimeError", torch="not implemented for '(Bool|Float)'",
               found="^RuntimeError"),
    Difference("factorisations come row-major; torch leaves them column-major, as LAPACK does", found="^strides",
               call="linalg|inverse|cholesky|triangular_solve|T.qr|geqrf|orgqr|ormqr|lu_unpack"),
    Difference("eager computes a conjugate immediately; torch sets a flag on a view of the same memory", found="^memory",
               call=r"t\('c8', .*(\.H|\.mH|\.conj\(\))|adjoint"),
    Difference("autograd records a transpose as a permutation: PermuteBackward0 instead of TBackward0",
               call=r"requires_grad_\(\)\.t\(\)"),
    Difference("torch sorts the rows of an expanded tensor in place in their shared memory and returns wrong medians",
               call=r"median\(t\('f4', 3, 1\).expand"),
    Difference("torch's Bessel and Airy functions of float64 have errors of 1e-6 near their zeros, and no correct digit at -2**63",
               call=r"airy_ai\(special\('i8'|(airy_ai|bessel_[jy][01])\(t\('f8'", found="^values"),
    Difference("trigamma is inf at a pole; torch returns a large number there", call=r"polygamma\(1", found="^values: inf"),
    Difference("eager computes in float32 and then casts to out=; torch computes in the dtype of out=",
               call="digamma|out=T.empty|cov", found="^values"),
    Difference("eager returns contiguous columns of positions; torch returns views of one matrix",
               call="unravel_index|multinomial|indices", found="^strides"),
    Difference("torch's empty list of positions is column-major", call=r"nonzero\(t\('f4', 0", found="^strides"),
    Difference("eager accepts tensors of any number of elements in nested sequences", call=r"T\.tensor\(\[T\.tensor"),
    Difference("eager has no complex dtype of half precision", call=r"T\.complex\(t\('f2'"),
    Difference("positions out of range raise IndexError in every index_ function", call="index_add", torch="out of bounds"),
    Difference("an empty tuple of dims reduces over all dims", call=r"logsumexp\(.*dim=\(\)"),
    Difference("eager lacks the function: no real model code was found to use it", call="embedding_renorm_|\\.index\\(",
               found="AttributeError|^no error"),
    Difference("a bool tensor to the power of a bool number is a bool tensor in torch", call=r"pow(_)?\(.*True\)", found="dtype|Bool"),
    Difference("an argument of a wrong type raises TypeError", call=r"\.to\(3\.5\)|T\.norm\(\[1\.0\]\)", found="TypeError"),
    Difference("eager always checks the positions of a sparse tensor; torch checks them only with check_invariants",
               call="sparse_coo_tensor", found="RuntimeError: (size is inconsistent|found negative)"),
    Difference("eager does not store names of dims: `names` is a tuple of None", call=r"\.names"),
]  # fmt: skip


def excused(text: str, theirs: Any, found: str, listed: Iterable[Difference] = DIFFERENCES) -> Difference | None:
    """The first entry of `listed` that covers this difference, or None."""
    return next((d for d in listed if d.covers(text, theirs, found)), None)


class MatchedDifferences:
    """A list of intended differences, and the reasons that matched a call, by family of calls."""

    def __init__(self, listed: list[Difference]) -> None:
        self.listed = listed
        self.reasons: dict[str, set[str]] = {}

    def check(self, family: str, differences: Iterable[tuple[str, Any, str]]) -> None:
        """Raise AssertionError for differences that are not listed.

        differences: (call, torch's outcome, description of the difference).
        """
        unexpected, matched = [], self.reasons.setdefault(family, set())
        for text, theirs, found in differences:
            reason = excused(text, theirs, found, self.listed)
            if reason is None:
                unexpected.append(f"{text}\n    {found}")
            else:
                matched.add(reason.why)
        assert not unexpected, f"{len(unexpected)} calls differ:\n" + "\n".join(unexpected[:20])

    def stale(self) -> list[str]:
        """The reasons that matched no call."""
        matched = set().union(*self.reasons.values())
        return [d.why for d in self.listed if d.why not in matched]
