"""0-d tensors on the CPU beside tensors on the emulated CUDA device, in compiled programs."""
import pytest

from tests.cuda.conftest import emulated
from tests.cuda.host_operands import SCENARIOS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [s.__name__ for s in SCENARIOS])
def test_on_the_emulated_device(name: str) -> None:
    pytest.importorskip("triton", reason="kernels run in Triton's interpreter: needs the gpu extra")
    done = emulated("-m", "tests.cuda.host_operands", name)
    assert done.returncode == 0, done.stderr[-4000:]
