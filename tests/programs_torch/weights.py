"""Weights from numpy, so that a program begins the same wherever it runs."""
import math

import numpy as np
import torch


def fill(model, seed):
    """Matrices scaled by their fan-in, small biases, norms near one."""
    stream = np.random.RandomState(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = stream.standard_normal(tuple(p.shape))
            if p.ndim < 2:
                noise = 0.05 * noise + ("norm" in name and name.endswith("weight"))
            else:
                noise = noise / math.sqrt(np.prod(p.shape[1:]))
            p.copy_(torch.from_numpy(np.asarray(noise, dtype=np.float32)))
    return model
