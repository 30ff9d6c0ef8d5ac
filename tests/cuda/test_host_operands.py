"""0-d tensors on the CPU beside tensors on the emulated CUDA device, in compiled programs."""
import pytest

from tests.cuda.conftest import check_emulated
from tests.cuda.host_operands import SCENARIOS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [s.__name__ for s in SCENARIOS])
def test_on_the_emulated_device(name: str) -> None:
    check_emulated("tests.cuda.host_operands", name)
