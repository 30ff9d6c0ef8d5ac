"""An encoder-decoder transformer that learns to sort sequences, with label smoothing and a warm-up schedule."""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn

from tests.programs_torch.weights import fill

PAD, BOS, FIRST = 0, 1, 2


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=32):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class Sorter(nn.Module):
    def __init__(self, vocab, d_model=32, nhead=4, layers=2):
        super().__init__()
        self.d_model = d_model
        self.embed = nn.Embedding(vocab, d_model)
        self.position = PositionalEncoding(d_model)
        self.transformer = nn.Transformer(d_model, nhead, layers, layers, dim_feedforward=64, dropout=0.0, activation="gelu",
                                          batch_first=True, norm_first=True)
        self.generator = nn.Linear(d_model, vocab)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        padding = src == PAD
        x = self.transformer(
            self.position(self.embed(src) * math.sqrt(self.d_model)), self.position(self.embed(tgt) * math.sqrt(self.d_model)),
            tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )
        return self.generator(x)


def batches(seed, count, size=24, longest=9, symbols=12):
    stream = np.random.RandomState(seed)
    for _ in range(count):
        src = stream.randint(FIRST, FIRST + symbols, (size, longest))
        lengths = stream.randint(4, longest + 1, size)
        src[np.arange(longest)[None] >= lengths[:, None]] = PAD
        out = np.where(src == PAD, 99, src)
        out.sort(axis=1)
        out[out == 99] = PAD
        tgt = np.concatenate([np.full((size, 1), BOS), out[:, :-1]], axis=1)
        yield torch.from_numpy(src), torch.from_numpy(tgt), torch.from_numpy(out)


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args(argv)

    net = fill(Sorter(FIRST + 12), seed=3)
    model = torch.compile(net) if args.compile else net
    decay = [p for p in net.parameters() if p.dim() >= 2]
    others = [p for p in net.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}],
                                  lr=4e-3, betas=(0.9, 0.98), eps=1e-6)
    warmup = 10
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    losses = []
    for src, tgt, out in batches(4, args.steps):
        logits = model(src, tgt)
        loss = criterion(logits.flatten(0, 1), out.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        src, tgt, out = next(batches(5, 1, size=64))
        hit = (net(src, tgt).argmax(-1) == out)[out != PAD]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {hit.float().mean().item():.3f}")
    return losses, hit.float().mean().item()


if __name__ == "__main__":
    main()
