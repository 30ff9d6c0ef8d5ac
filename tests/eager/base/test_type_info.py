"""finfo, iinfo and the version: the numbers and texts that torch 2.13 gives."""

from __future__ import annotations

import pytest

import eager as torch
from eager.version import TorchVersion

FINFO = {
    "float32": "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, "
    "eps=1.19209e-07, smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)",
    "float64": "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, "
    "eps=2.22045e-16, smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)",
    "float16": "finfo(resolution=0.001, min=-65504, max=65504, "
    "eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)",
    "bfloat16": "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, "
    "eps=0.0078125, smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)",
}  # fmt: skip


@pytest.mark.parametrize("name", FINFO)
def test_finfo_is_torchs(name: str) -> None:
    info = torch.finfo(getattr(torch, name))
    assert repr(info) == FINFO[name]
    assert info.bits == getattr(torch, name).itemsize * 8 and info.dtype == name
    one = torch.ones((), dtype=getattr(torch, name))
    assert (one + info.eps).item() > 1 and (one + info.eps / 2.001).item() == 1
    assert info.tiny == info.smallest_normal and info.min == -info.max


def test_finfo_of_a_complex_type_and_of_none() -> None:
    assert torch.finfo(torch.complex64) == torch.finfo(torch.float32) == torch.finfo()
    assert torch.finfo(torch.complex128) != torch.finfo(torch.float32)


@pytest.mark.parametrize(("name", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int64", -(2**63), 2**63 - 1)])
def test_iinfo_is_torchs(name: str, low: int, high: int) -> None:
    info = torch.iinfo(getattr(torch, name))
    assert (info.min, info.max, repr(info)) == (low, high, f"iinfo(min={low}, max={high}, dtype={name})")


@pytest.mark.parametrize(
    ("call", "text"),
    [(lambda: torch.finfo(torch.int32), "Use torch.iinfo to handle 'torch.finfo'"),
     (lambda: torch.iinfo(torch.float32), "Use torch.finfo to handle 'torch.iinfo'"),
     (lambda: torch.iinfo(torch.bool), "torch.bool is not supported by torch.iinfo"),
     (lambda: torch.finfo("float32"), "must be torch.dtype, not str")],
)  # fmt: skip
def test_wrong_types_are_refused(call: object, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()  # type: ignore[operator]


ORDERED = ["1.9", "2.0.0.dev3", "2.0a1", "2.0b2", "2.0rc1", "2.0", "2.0+cpu", "2.0.post1", "2.4", "2.13.0", "10.0"]


def test_versions_are_ordered_by_number() -> None:
    for i, low in enumerate(ORDERED):
        for high in ORDERED[i + 1 :]:
            assert TorchVersion(low) < high and TorchVersion(high) > low and TorchVersion(low) <= high and TorchVersion(low) != high
    assert TorchVersion("2.0") == "2.0.0" and TorchVersion("2.0") >= "2"
    assert TorchVersion("2.13.0") >= (2, 4) and TorchVersion("2.13.0") > [2, 12, 9]
    assert TorchVersion("2.13.0") != "not a version"


def test_versions_agree_with_packaging() -> None:
    packaging = pytest.importorskip("packaging.version")
    for a in ORDERED:
        for b in ORDERED:
            assert (TorchVersion(a) < b) == (packaging.Version(a) < packaging.Version(b)), (a, b)
            assert (TorchVersion(a) == packaging.Version(b)) == (a == b)
    parsed = packaging.Version(torch.__version__)
    assert parsed >= packaging.Version("2.0") and parsed.local == f"framejit.{torch.version.framejit}"


def test_the_version_is_the_projects() -> None:
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert torch.version.framejit == project["version"]
    assert isinstance(torch.__version__, str) and str(torch.__version__).split("+")[0] == "2.13.0"
