"""Libraries of the device: products and convolutions, on the emulated device and by libraries that compute on the host."""
from pathlib import Path

import pytest

from tests.cuda import fake_blas, fake_cudnn, library_products
from tests.cuda.conftest import check_emulated

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [s.__name__ for s in library_products.SCENARIOS])
def test_on_the_emulated_device(name: str, tmp_path: Path) -> None:
    check_emulated("tests.cuda.library_products", name, FRAMEJIT_CACHE_DIR=str(tmp_path))


@pytest.mark.parametrize("name", [s.__name__ for s in fake_blas.SCENARIOS])
def test_against_a_library_that_computes_on_the_host(name: str) -> None:
    check_emulated("tests.cuda.fake_blas", name)


@pytest.mark.parametrize("name", [s.__name__ for s in fake_cudnn.SCENARIOS])
def test_convolutions_by_cudnn(name: str) -> None:
    check_emulated("tests.cuda.fake_cudnn", name)
