"""A convolutional classifier of handwritten digits.

Data: scikit-learn 1.5.2's `digits.csv.gz`, its copy of the test set of the UCI "Optical Recognition of Handwritten
Digits" (E. Alpaydin and C. Kaynak, 1998; CC BY 4.0): 1797 images of 8x8 pixels from 0 to 16, and the digit.
"""
import argparse
import gzip
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

from tests.programs_torch.weights import fill

DATA = Path(__file__).resolve().parents[1] / "data" / "digits.csv.gz"


class Digits(Dataset):
    def __init__(self, train=True):
        with gzip.open(DATA, "rt") as f:
            rows = np.loadtxt(f, delimiter=",")
        rows = rows[:1437] if train else rows[1437:]
        self.images = torch.tensor(rows[:, :64] / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
        self.labels = torch.from_numpy(rows[:, 64].astype(np.int64))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Shuffled(Sampler):
    """A random permutation from numpy, drawn in each epoch."""

    def __init__(self, n, seed):
        self.n, self.stream = n, np.random.RandomState(seed)

    def __iter__(self):
        return iter(self.stream.permutation(self.n).tolist())

    def __len__(self):
        return self.n


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.fc1 = nn.Linear(32 * 2 * 2, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        x = torch.flatten(x, 1)
        return self.fc2(F.relu(self.fc1(x)))


def train(model, loader, optimizer, scheduler, criterion):
    model.train()
    losses = []
    for data, target in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(data), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = 0
    for data, target in loader:
        pred = model(data).argmax(dim=1, keepdim=True)
        correct += pred.eq(target.view_as(pred)).sum().item()
    return correct / len(loader.dataset)


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args(argv)

    train_set, test_set = Digits(True), Digits(False)
    loader = DataLoader(train_set, batch_size=64, sampler=Shuffled(len(train_set), seed=1), drop_last=True)
    test_loader = DataLoader(test_set, batch_size=120, shuffle=False)
    net = fill(Net(), seed=0)
    model = torch.compile(net) if args.compile else net
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, epochs=args.epochs, steps_per_epoch=len(loader))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    losses = []
    for epoch in range(1, args.epochs + 1):
        losses += train(model, loader, optimizer, scheduler, criterion)
        print(f"epoch {epoch}: loss {losses[-1]:.4f}, accuracy {accuracy(model, test_loader):.3f}")
    return losses, accuracy(model, test_loader)


if __name__ == "__main__":
    main()
