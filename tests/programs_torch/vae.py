"""A variational autoencoder on the digits: noise from numpy, a checkpoint saved half-way and read back."""
import argparse
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import RMSprop
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

from tests.programs_torch.digits import Digits
from tests.programs_torch.weights import fill


class VAE(nn.Module):
    def __init__(self, z=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ELU(), nn.Linear(48, 2 * z))
        self.decoder = nn.Sequential(nn.Linear(z, 48), nn.ELU(), nn.Linear(48, 64))

    def forward(self, x, eps):
        mu, logvar = self.encoder(x).chunk(2, dim=-1)
        z = mu + eps * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar


def loss_function(recon, x, mu, logvar, beta=1.0):
    bce = F.binary_cross_entropy_with_logits(recon, x, reduction="none").sum(-1)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=-1)
    return (bce + beta * kld).mean()


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args(argv)

    data = TensorDataset(Digits(True).images.flatten(1))
    loader = DataLoader(data, batch_size=128, drop_last=True)
    noise = np.random.RandomState(7)
    net = fill(VAE(), seed=6)

    def step(x, eps):
        recon, mu, logvar = net(x, eps)
        return loss_function(recon, x, mu, logvar)

    forward = torch.compile(step) if args.compile else step
    optimizer = RMSprop(net.parameters(), lr=2e-3, alpha=0.95, momentum=0.5, centered=True)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)
    losses = []
    for epoch in range(args.epochs):
        for (x,) in loader:
            eps = torch.as_tensor(noise.standard_normal((len(x), 6)), dtype=torch.float32)
            loss = forward(x, eps)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        if epoch == args.epochs // 2 - 1:
            file = io.BytesIO()
            torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch}, file)
            for p in net.parameters():
                p.data.zero_()
            file.seek(0)
            checkpoint = torch.load(file, weights_only=True)
            net.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
            assert checkpoint["epoch"] == epoch
    with torch.no_grad():
        images = torch.sigmoid(net.decoder(torch.zeros(1, 6))).view(8, 8)
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}; the mean image has {(images > 0.5).sum().item()} dark pixels")
    return losses, images.mean().item()


if __name__ == "__main__":
    main()
