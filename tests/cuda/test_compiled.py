"""Compiled programs on the emulated CUDA device."""
import pytest

from tests.cuda.compiled import SCENARIOS
from tests.cuda.conftest import check_emulated

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [s.__name__ for s in SCENARIOS])
def test_on_the_emulated_device(name: str) -> None:
    check_emulated("tests.cuda.compiled", name)
