"""A character model over a stream: iterable data shared out over workers, a collate function that pads, LSTM, accumulation.

    python language_model.py WORKERS START COMPILED
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the angry bear into the deep dark wood "
VOCABULARY = sorted(set(TEXT))


class Sentences(IterableDataset):
    """Pieces of the text of varying lengths, the k-th to worker k."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for k in range(first, self.count, step):
            start, length = k * 5 % 60, 8 + k * 3 % 13
            yield {"text": TEXT[start : start + length], "id": k}


class Collate:
    """Index sequences, padded to the longest, with their lengths."""

    def __init__(self, pad):
        self.pad = pad

    def __call__(self, samples):
        rows = [torch.tensor([VOCABULARY.index(c) for c in s["text"]]) for s in samples]
        return {"tokens": pad_sequence(rows, batch_first=True, padding_value=self.pad), "ids": [s["id"] for s in samples]}


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(size + 1, 12, padding_idx=size)
        self.rnn = nn.LSTM(12, 20, batch_first=True)
        self.out = nn.Sequential(nn.LayerNorm(20), nn.Linear(20, size))

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embedding(tokens))
        return self.out(hidden)


def main(workers, start, compiled):
    size = len(VOCABULARY)
    model = Model(size)
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(torch.cos(torch.arange(p.numel(), dtype=torch.float32) * (k + 0.7)).reshape(p.shape) * 0.2)
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    options = {"multiprocessing_context": start, "prefetch_factor": 3} if workers else {}
    loader = DataLoader(Sentences(48), batch_size=6, collate_fn=Collate(size), num_workers=workers, **options)
    for epoch in range(3):
        total, ids = 0.0, []
        for i, batch in enumerate(loader):
            tokens = batch["tokens"]
            logits = forward(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=size) / 2
            loss.backward()
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item()
            ids += batch["ids"]
        print(f"epoch {epoch} loss {total:.4f} ids {ids[:8]} of {len(set(ids))}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3] == "compiled")
