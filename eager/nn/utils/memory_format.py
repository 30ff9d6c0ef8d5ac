"""Conversion of convolution weights to another memory format."""
from __future__ import annotations

from typing import Any

from eager.nn.module import Module
from eager.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d


def _convert(module: Module, memory_format: Any, kinds: tuple[type[Module], ...]) -> Module:
    for m in module.modules():
        if isinstance(m, kinds):
            m.weight.data = m.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Copy the weights of every Conv2d and ConvTranspose2d in `module` to a memory format; returns the module."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Copy the weights of every Conv3d and ConvTranspose3d in `module` to a memory format; returns the module."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
