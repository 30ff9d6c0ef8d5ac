"""Where eager differs from torch 2.13 on purpose, with the reason. Read by compare_calls.py and test_calls.py."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """Calls that match `call`, where torch's error text matches `torch` or what differs matches `found`."""

    why: str
    call: str = ""
    torch: str | None = None
    found: str = ""

    def covers(self, text: str, theirs: Any, found: str) -> bool:
        error = theirs if isinstance(theirs, dict) and "error" in theirs else None
        raised = self.torch is None or (error is not None and bool(re.search(self.torch, error["text"])))
        return raised and bool(re.search(self.call, text)) and bool(re.search(self.found, found))


DIFFERENCES = [
    Difference("bags of no elements are zeros; torch makes their offsets by an arange of step 0", call=r"embedding_bag\(T\.empty\(2,0",
               torch="step must be nonzero"),
    Difference("torch has no kernel for the dtype; eager's rule serves every dtype", found="^no error|^[0-9]+ results",
               torch="not implemented for|[Uu]nsupported (?!operation)|not support|not currently supported|only supports"),
    Difference("eager has no complex32: float16 with complex numbers is complex64", found="complex32"),
    Difference("torch multiplies by alpha = 1 even where none is given, which makes nan of an infinite part; numpy adds",
               call=r"special\('c", found="^values"),
    Difference("torch's iterators want one dtype of input and out= here; eager casts wherever the category allows", found="^no error",
               torch="^(Found|Expected) (the )?dtype"),
    Difference("eager fails one check earlier or later, with another subclass of RuntimeError", torch="not implemented for '(Bool|Float)'",
               found="^RuntimeError"),
    Difference("factorisations come row-major; torch leaves them column-major, as LAPACK does", found="^strides",
               call="linalg|inverse|cholesky|triangular_solve|T.qr|geqrf|orgqr|ormqr|lu_unpack"),
    Difference("conjugates are made at once; torch keeps a flag on a view of the same memory", found="^memory",
               call=r"t\('c8', .*(\.H|\.mH|\.conj\(\))|adjoint"),
    Difference("the transpose is recorded as the permutation that it is: PermuteBackward0 for TBackward0",
               call=r"requires_grad_\(\)\.t\(\)"),
    Difference("torch sorts the shared memory of an expanded tensor in place, row over row, and so gives wrong medians",
               call=r"median\(t\('f4', 3, 1\).expand"),
    Difference("torch's Bessel and Airy functions of float64 are good to 1e-6 near their zeros only, and of nothing at -2**63",
               call=r"airy_ai\(special\('i8'|(airy_ai|bessel_[jy][01])\(t\('f8'", found="^values"),
    Difference("a pole of trigamma is inf; torch sees a large number beside it", call=r"polygamma\(1", found="^values: inf"),
    Difference("computed in float32 and then cast to out=; torch computes in out='s dtype",
               call="digamma|out=T.empty|cov", found="^values"),
    Difference("whole columns of positions; torch gives views of one matrix", call="unravel_index|multinomial|indices", found="^strides"),
    Difference("torch's list of no positions is column-major", call=r"nonzero\(t\('f4', 0", found="^strides"),
    Difference("nested sequences may hold tensors of one element or more", call=r"T\.tensor\(\[T\.tensor"),
    Difference("eager's dtypes have no half precision complex", call=r"T\.complex\(t\('f2'"),
    Difference("positions out of range are an IndexError in every index_ function", call="index_add", torch="out of bounds"),
    Difference("an empty sum over no dims is one over all dims", call=r"logsumexp\(.*dim=\(\)"),
    Difference("not in eager: no real model code was found to use it", call="embedding_renorm_|\\.index\\(",
               found="AttributeError|^no error"),
    Difference("a division that is exact in float32 rounds the other way in half precision", call=r"floor_divide\(t\('f2'|'f2', 3\) //",
               found="^values"),
    Difference("bool to a bool power is bool in torch where the exponent is a number", call=r"pow(_)?\(.*True\)", found="dtype|Bool"),
    Difference("a wrong argument is a TypeError", call=r"\.to\(3\.5\)|T\.norm\(\[1\.0\]\)", found="TypeError"),
    Difference("positions of a sparse tensor are always checked; torch does so only with check_invariants", call="sparse_coo_tensor",
               found="RuntimeError: (size is inconsistent|found negative)"),
    Difference("the names of dims are not kept: `names` is a tuple of None", call=r"\.names"),
]  # fmt: skip


def excused(text: str, theirs: Any, found: str, listed: Iterable[Difference] = DIFFERENCES) -> Difference | None:
    """The entry that covers this difference, or None."""
    return next((d for d in listed if d.covers(text, theirs, found)), None)


class Met:
    """A list of differences that are meant, and which of them a comparison met, by family of calls."""

    def __init__(self, listed: list[Difference]) -> None:
        self.listed = listed
        self.reasons: dict[str, set[str]] = {}

    def check(self, family: str, differences: Iterable[tuple[str, Any, str]]) -> None:
        """Raise AssertionError for what is not listed. differences: (call, torch's outcome, what differs)."""
        unexpected, met = [], self.reasons.setdefault(family, set())
        for text, theirs, found in differences:
            reason = excused(text, theirs, found, self.listed)
            if reason is None:
                unexpected.append(f"{text}\n    {found}")
            else:
                met.add(reason.why)
        assert not unexpected, f"{len(unexpected)} calls differ:\n" + "\n".join(unexpected[:20])

    def stale(self) -> list[str]:
        """The reasons that no call gave."""
        met = set().union(*self.reasons.values())
        return [d.why for d in self.listed if d.why not in met]
