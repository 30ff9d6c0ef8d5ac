"""Compiled programs on the emulated CUDA device."""
import pytest

from tests.cuda.compiled import SCENARIOS
from tests.cuda.conftest import emulated

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [s.__name__ for s in SCENARIOS])
def test_on_the_emulated_device(name: str) -> None:
    pytest.importorskip("triton", reason="kernels run in Triton's interpreter: needs the gpu extra")
    done = emulated("-m", "tests.cuda.compiled", name)
    assert done.returncode == 0, done.stderr[-4000:]
