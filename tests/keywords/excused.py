"""Findings of `tests.keywords` that are intended, with the reason. Patterns match `Finding.where` from its beginning.

Each pattern names the calls, the keyword and the values. A pattern that matches no finding fails its test.
"""
from __future__ import annotations

import re
from typing import Final

from tests.keywords.compare import Finding

_ARITHMETIC: Final = "add|sub|subtract|mul|multiply|div|divide|true_divide|floor_divide"
EXCUSED: Final[tuple[tuple[str, str], ...]] = (
    # torch accepts, eager refuses
    (rf"refused: T\.({_ARITHMETIC})\(out=(True|False|-17|2\.5)\)",
     "torch wraps the number in a new tensor, writes the result into it and returns it: no caller has that `out`"),
    (r"refused: nn\.MaxUnpool[12]d\((stride|padding)=(True|False)\)|refused: F\.max_unpool[12]d\(padding=False\)",
     "sizes of windows are integers; torch refuses a bool in max_unpool3d, but its Python code for 1 and 2 dims accepts it"),
    (r"refused: T\.lobpcg\(iK=", "torch's default method never reads the preconditioner; eager's does"),
    (r"refused: T\.lobpcg\(method=", "torch treats every value except 'ortho' as 'basic'; eager accepts two names and refuses others"),
    (r"refused: T\.lobpcg\(niter=2\.5\)", "a number of iterations is an integer; torch only compares its counter with it"),
    (r"refused: T\.nn\.init\.trunc_normal_\(std=-17\)", "no distribution has a negative deviation; torch's rejection sampling squares it"),
    (r"refused: nn\.LinearCrossEntropyLoss\(options=", "eager lacks the chunked form that the options configure, and raises"),
    (r"refused: T\.func\.vmap\(out_dims=(True|False)\)", "a dim is an integer: torch refuses a bool for in_dims, but not for out_dims"),
    (r"refused: T\.autograd\.grad(grad)?check\(masked=", "eager lacks masked gradients of sparse tensors, and raises"),
    (r"refused: T\.autograd\.gradgradcheck\(check_fwd_over_rev=", "eager has no forward mode through autograd.grad, and says so"),
    (r"refused: F\.multi_head_attention_forward\([qkv]_proj_weight=", "torch reads these weights only with use_separate_proj_weight"),
    # torch refuses, eager accepts
    (r"taken: T\.autograd\.gradgradcheck\(eps=True\)", "True is a step of 1; torch fails to subtract the bool from a tensor"),
    (r"taken: T\.save\(pickle_protocol=(True|-17)\)",
     "protocols 1 and -17 (the newest) are written and read; torch writes them, and its restricted reader knows protocol 2 alone"),
    (r"taken: T\.linalg\.cond\(p=True\)", "True is the order 1; torch's backward pass fails for it, as for -1, inf and 'fro'"),
    (r"taken: Tensor\.dist\(p=False\)", "False is the order 0; torch's backward pass fails for it if both tensors require gradients"),
    # the value acts in torch alone
    (r"ignored: T\.lobpcg\(niter=True\)", "True is one iteration, which suffices eager's method for this matrix"),
    (r"ignored: T\.empty_strided\((requires_grad|pin_memory)=False\)",
     "False is the default; torch leaves the memory undefined, and two calls differ"),
)  # fmt: skip


def excused(finding: Finding) -> str | None:
    """The reason why a finding is meant, or None."""
    return next((why for pattern, why in EXCUSED if re.match(pattern, finding.where)), None)


def unused(findings: list[Finding]) -> list[str]:
    """Patterns that match no finding."""
    return [pattern for pattern, _ in EXCUSED if not any(re.match(pattern, f.where) for f in findings)]
