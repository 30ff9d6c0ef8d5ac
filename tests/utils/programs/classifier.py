"""A small image classifier as one writes it for torch: map-style data, augmentation in workers, AdamW, a schedule, evaluation.

    python classifier.py WORKERS START COMPILED
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset


class Digits(Dataset):
    """Blobs of ten classes; every third sample is flipped where it is loaded."""

    def __init__(self, n, transform=None):
        grid = torch.stack(torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij"))
        labels = torch.arange(n) * 7 % 10
        centers = torch.stack([labels * 0.9 + 1.5, 10.0 - labels * 0.8], 1)
        far = ((grid[None] - centers[:, :, None, None]) ** 2).sum(1)
        self.images = torch.exp(-far / 6).unsqueeze(1) + 0.05 * torch.sin(torch.arange(n * 144.0)).reshape(n, 1, 12, 12)
        self.labels = labels
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.transform is not None:
            image = self.transform(image, i)
        return image, int(self.labels[i])


def flip_thirds(image, i):
    return image.flip(-1) if i % 3 == 0 else image


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.block = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU())
        self.head = nn.Linear(16 * 9, 10)

    def forward(self, x):
        x = self.stem(x)
        x = checkpoint(self.block, x, use_reentrant=False) if self.training else self.block(x)
        return self.head(F.adaptive_avg_pool2d(x, 3).flatten(1))


def set_weights(model):
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            wave = torch.sin(torch.arange(p.numel(), dtype=p.dtype) * (k + 1.3)).reshape(p.shape)
            p.copy_(wave * 1.5 / p[0].numel() ** 0.5 if p.ndim > 1 else wave * 0.1 + (p.mean() > 0.5))


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return right / len(loader.dataset)


def main(workers, start, compiled):
    torch.set_default_dtype(torch.float64)  # Adam turns the rounding of small gradients into whole steps
    options = {"num_workers": workers, "persistent_workers": workers > 0}
    if workers:
        options["multiprocessing_context"] = start
    train = DataLoader(Digits(96, flip_thirds), batch_size=16, **options)
    plain = Digits(40)
    test = DataLoader(Subset(TensorDataset(plain.images, plain.labels), range(5, 40)), batch_size=10)
    model = Net()
    set_weights(model)
    step = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    for epoch in range(5):
        loss = train_epoch(step, train, optimizer)
        schedule.step()
        print(f"epoch {epoch} loss {loss:.4f} accuracy {accuracy(step, test):.3f} lr {schedule.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3] == "compiled")
