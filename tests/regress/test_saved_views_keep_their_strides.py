"""A value saved for backward that is a view with gaps reaches backward in the strides it was traced with."""

import eager as torch
from eager import nn


def test_gru_trains_compiled():
    torch.manual_seed(0)
    model, x = nn.GRU(3, 4), torch.randn(5, 2, 3)
    torch.compile(model, fullgraph=True)(x)[0].sum().backward()
    compiled = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    model(x)[0].sum().backward()
    for n, p in model.named_parameters():
        assert torch.allclose(compiled[n], p.grad, atol=1e-5)
