"""A character-level LSTM on the Zen of Python, trained by truncated back-propagation, then sampled."""
import argparse
import codecs
import contextlib
import io

import numpy as np
import torch
from torch import nn, optim

from tests.programs_torch.weights import fill

with contextlib.redirect_stdout(io.StringIO()):
    import this

TEXT = codecs.decode(this.s, "rot13")


class CharLSTM(nn.Module):
    def __init__(self, vocab, hidden=48, layers=2):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.embed = nn.Embedding(vocab, 24)
        self.lstm = nn.LSTM(24, hidden, layers, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x, state):
        out, state = self.lstm(self.embed(x), state)
        return self.head(self.norm(out)), state

    def begin(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(self.layers, batch, self.hidden), weight.new_zeros(self.layers, batch, self.hidden)


@torch.no_grad()
def sample(model, chars, start="The ", length=40):
    model.eval()
    index = {c: i for i, c in enumerate(chars)}
    state, text = model.begin(1), start
    x = torch.tensor([[index[c] for c in start]])
    for _ in range(length):
        logits, state = model(x, state)
        x = logits[:, -1].argmax(-1, keepdim=True)
        text += chars[x.item()]
    return text


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args(argv)

    chars = sorted(set(TEXT))
    data = torch.tensor([chars.index(c) for c in TEXT], dtype=torch.long)
    batch, window = 8, 16
    length = (len(data) - 1) // batch
    x, y = data[: batch * length].view(batch, length), data[1 : batch * length + 1].view(batch, length)
    net = fill(CharLSTM(len(chars)), seed=2)
    model = torch.compile(net) if args.compile else net
    optimizer = optim.Adam(net.parameters(), lr=1e-2, betas=(0.9, 0.99))
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=25, gamma=0.5)
    losses, state = [], net.begin(batch)
    for step in range(args.steps):
        at = (step * window) % (length - window)
        if at < window and step:
            state = net.begin(batch)
        state = tuple(s.detach() for s in state)
        logits, state = model(x[:, at : at + window], state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, len(chars)), y[:, at : at + window].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    print(f"loss {np.mean(losses[-5:]):.3f} bits {np.mean(losses[-5:]) / np.log(2):.3f}: {sample(net, chars)!r}")
    return losses, float(np.mean(losses[-5:]))


if __name__ == "__main__":
    main()
