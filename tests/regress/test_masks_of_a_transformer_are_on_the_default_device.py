import eager as torch
from eager import nn


def test_a_mask_without_a_device_is_on_the_default_device() -> None:
    with torch.device("meta"):
        assert nn.Transformer.generate_square_subsequent_mask(3).device.type == "meta"
        assert nn.Transformer.generate_square_subsequent_mask(3, device="cpu").device.type == "cpu"
