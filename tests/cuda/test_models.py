"""Models and training runs on the emulated CUDA device, eager and in every mode."""
import pytest

from tests.cuda.conftest import check_emulated
from tests.cuda.models import MODELS, PARTS

pytestmark = pytest.mark.gpu


def test_ten_models_of_the_zoo_run() -> None:
    assert len({name for models in MODELS.values() for name in models}) == 10


@pytest.mark.parametrize("part", PARTS)
def test_the_device_gives_the_results_of_the_cpu(part: str) -> None:
    check_emulated("tests.cuda.models", part, FRAMEJIT_AUTOTUNE_BUDGET_S="1")
