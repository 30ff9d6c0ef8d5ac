"""A graph network on Zachary's karate club: two members are labelled, the other 32 are found.

Data: the friendships and factions of W. W. Zachary, "An information flow model for conflict and fission in small
groups", Journal of Anthropological Research 33 (1977).
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.programs_torch.weights import fill

FRIENDS = {
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31], 1: [2, 3, 7, 13, 17, 19, 21, 30], 2: [3, 7, 8, 9, 13, 27, 28, 32],
    3: [7, 12, 13], 4: [6, 10], 5: [6, 10, 16], 6: [16], 8: [30, 32, 33], 9: [33], 13: [33], 14: [32, 33], 15: [32, 33],
    18: [32, 33], 19: [33], 20: [32, 33], 22: [32, 33], 23: [25, 27, 29, 32, 33], 24: [25, 27, 31], 25: [31], 26: [29, 33],
    27: [33], 28: [31, 33], 29: [32, 33], 30: [32, 33], 31: [32, 33], 32: [33],
}
HI = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21}
MEMBERS = 34


class SAGE(nn.Module):
    """Mean of the neighbours' messages, joined with the node's own."""

    def __init__(self, cin, cout):
        super().__init__()
        self.own, self.others = nn.Linear(cin, cout), nn.Linear(cin, cout, bias=False)

    def forward(self, x, edge_index):
        source, target = edge_index
        messages = self.others(x)[source]
        total = torch.zeros(x.size(0), messages.size(1)).index_add_(0, target, messages)
        degree = torch.zeros(x.size(0)).scatter_add_(0, target, torch.ones(target.size(0)))
        return self.own(x) + total / degree.clamp(min=1).unsqueeze(-1)


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.embed = nn.Embedding(MEMBERS, 8)
        self.layers = nn.ModuleList([SAGE(8, hidden), SAGE(hidden, hidden)])
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, 2)

    def forward(self, edge_index):
        x = self.embed.weight
        for i, layer in enumerate(self.layers):
            h = layer(x, edge_index)
            x = F.relu(h) if i == 0 else x + torch.tanh(h)
        return self.out(self.norm(x))


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args(argv)

    pairs = [(a, b) for a, friends in FRIENDS.items() for b in friends]
    edge_index = torch.tensor(pairs + [(b, a) for a, b in pairs]).t().contiguous()
    labels = torch.tensor([0 if i in HI else 1 for i in range(MEMBERS)])
    known = torch.zeros(MEMBERS, dtype=torch.bool)
    known[[0, 33]] = True
    net = fill(Net(), seed=8)
    model = torch.compile(net) if args.compile else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9, nesterov=True, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
    losses = []
    for _ in range(args.steps):
        optimizer.zero_grad()
        logits = model(edge_index)
        source, target = edge_index
        smooth = (logits.softmax(-1)[source] - logits.softmax(-1)[target]).pow(2).sum(-1).mean()
        loss = F.cross_entropy(logits[known], labels[known]) + smooth
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        found = (net(edge_index).argmax(-1) == labels)[~known].float().mean().item()
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}; {found:.2f} of the others found")
    return losses, found


if __name__ == "__main__":
    main()
