"""Where generated calls differ from torch 2.13, with the reason. Read by compare_calls.py and test_generated_calls.py.

KNOWN explains other results. generated_open.txt lists the calls of the stored sample where one of the two refuses what the other
takes, or raises another class: those are open, and test_generated_calls.py fails for any call that is not on that list.
"""
from __future__ import annotations

from pathlib import Path

from tests.data.call_differences import Difference

KNOWN: list[Difference] = [
    Difference("the matrices made for these calls are singular: the digits are those of rounding errors", call=
               r"slogdet|logdet|pinv|cond\(|tensorsolve|linalg\.lu\(|matrix_power\(.*-\d|matrix_rank|cholesky_ex|solve|svd|inv",
               found=r"^values|^(no error|\d results).*(singular|is zero)"),
    Difference("torch's top-level embedding_bag takes offsets of two dims and reads undefined memory; eager refuses them",
               call=r"T\.embedding_bag\("),
    Difference("at 0.5 the recurrence is exact for any degree; torch's cosine of a large degree is not", call=r"chebyshev.*special",
               found="^values"),
    Difference("eager's recurrence in float64 overflows to an infinity where torch's in float32 gives inf - inf", call=r"hermite.*special",
               found="^values"),
    Difference("torch takes a fraction for the number of a device", call=r"\.to\(2\.5\)"),
    Difference("MKL, which torch calls, refuses an empty batch of transforms", call=r"T\.fft\.\w+\(t\('f4', 0", found="MKL FFT error"),
    Difference("torch makes a view where this layout needs a copy, and refuses", call=r"kron|take_along_dim",
               found="view size is not compatible"),
    Difference("torch writes expanded targets without a defined order, and refuses most of them; eager refuses all of these",
               call=r"expand.*\.(tril_|triu_|addmv_|baddbmm_)|threshold_\(.*expand", found="more than one element"),
    Difference("torch takes a slice outside the memory of an empty target, or writes beyond that of an expanded one; eager names the index",
               call=r"index_copy|index_fill|as_strided_scatter", found="setStorage|reach element"),
    Difference("torch does not look at the statistics of an empty input", call=r"batch_norm\(t\('f4', 3, 0\)", found="running_mean"),
    Difference("torch reads the positions of a tensor into another type first", call=r"tensor_split\(.*special",
               found="cannot be represented"),
    Difference("edges and boundaries that do not rise: the result is undefined", call=r"bucketize|searchsorted|histogram", found="^values"),
    Difference("positions that overlap are written in no defined order", call=r"as_strided_scatter", found="^values"),
    Difference("factorisations come row-major; torch leaves them column-major, as LAPACK does", found="^strides",
               call=r"\.(svd|qr)\(|matrix_power\(.*-\d"),
    Difference("a copy of a tensor with gaps is dense; torch keeps the gaps", call=r"slice_scatter\(.*::2", found="^strides"),
    Difference("torch returns an empty input, with the strides that numpy gave it", call=r"shuffle\(", found=r"^strides.* \[0, 0"),
    Difference("torch's list of no positions is column-major", call=r"(nonzero|argwhere|where)\(t\('..', (0, |3, 0)", found="^strides"),
    Difference("a nan or an infinity as an option: torch's comparison decides by chance which branch is taken", found="^values",
               call=r"=-?nan|=-?inf|, nan\)|, inf\)|zeta\(inf"),
    Difference("transforms and differences of non-finite numbers: eager gives nan wherever one takes part", call=r"(fft|gradient).*special",
               found="^values"),
    Difference("torch's top-level losses take reduction as a number, and any unknown one as none", call=r"reduction=-\d", found="^shape"),
    Difference("eager computes halves in float32 and rounds once", call=r"'(bf|f2)'", found="^values"),
    Difference("torch's median reads beyond the memory of an expanded tensor", call=r"median\(.*expand", found="^values"),
    Difference("losses of integers: torch's mean refuses some and wraps in others", call=r"hinge_embedding|bilinear", found="^dtype"),
    Difference("gelu of an infinity is its limit; torch gives nan", call=r"gelu\(special", found="^values"),
    Difference("trigamma within 1e-3 of a pole, and xlog1py with a bool", call=r"polygamma|xlog1py", found="^values"),
    Difference("conjugates are made at once", call=r"T\.conj\(", found="^memory"),
    Difference("linspace of one bool, logspace to a complex end, and where of a 0-d condition", call=r"T\.(linspace|logspace|where)\("),
    Difference("diff of order 0 is a view of its input", call=r"diff\(.*n=0", found="^memory"),
]  # fmt: skip


def open_calls() -> frozenset[str]:
    """Calls of the sample that eager takes and torch refuses, or the other way round, or that raise another class."""
    return frozenset((Path(__file__).parent / "generated_open.txt").read_text().splitlines())
