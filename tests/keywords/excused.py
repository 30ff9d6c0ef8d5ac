"""Findings of `tests.keywords` that are intended, with the reason. Patterns match `Finding.where` from its beginning."""
from __future__ import annotations

import re
from typing import Final

from tests.keywords.compare import Finding

EXCUSED: Final[tuple[tuple[str, str], ...]] = (
    (r"taken: T\.(max_pool\dd(_with_indices)?|adaptive_max_pool1d)\(return_indices|taken: T\.(celu|rrelu)\(inplace",
     "the function of nn.functional stands under torch's name as well, with all of its keywords"),
    (r"taken: T\.range\(step=", "the empty range"),
    (r"taken: nn\.\w+\(\w+=(Wrong\(\)|'bogus'|-17|2\.5)\)", "a layer takes the truth of a flag; torch's does until it calls its kernel"),
    (r"taken: (nn|optim|T|Tensor)\.\w+(\.\w+)?\(\w+=(True|False)\)", "True and False stand for 1 and 0 where a number is wanted"),
    (r"taken: F\.scaled_dot_product_attention\(dropout_p=", "a negative rate drops nothing, as in torch's other kernels of this function"),
    (r"taken: optim\.LBFGS\(history_size=", "a history of 2.5 keeps two"),
    (r"taken: Tensor\.is_pinned\(device=", "the device is deprecated and has no effect in torch's accelerator-free builds"),
    (r"taken: Tensor\.index_reduce\(include_self=", "torch has no kernel for the dtype; eager's rule serves every dtype"),
    (r"ignored: T\.empty_strided\(", "torch leaves the memory undefined: two calls differ"),
    (r"ignored: F\.elu_\((input_)?scale=True", "True stands for 1, the default"),
    (r"refused: ", "eager checks the class or the range of a value that torch's Python takes for its truth, or never reads"),
)  # fmt: skip


def excused(finding: Finding) -> str | None:
    """The reason why a finding is meant, or None."""
    return next((why for pattern, why in EXCUSED if re.match(pattern, finding.where)), None)


def unused(findings: list[Finding]) -> list[str]:
    """Patterns that match no finding."""
    return [pattern for pattern, _ in EXCUSED if not any(re.match(pattern, f.where) for f in findings)]
