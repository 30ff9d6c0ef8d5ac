"""Sets, point clouds and graphs."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import Linear, Parameter
from torch.nn.parameter import Parameter as P

from tests.zoo.case import Case


def glorot(tensor):
    if tensor is not None:
        stdv = (6.0 / (tensor.size(-2) + tensor.size(-1))) ** 0.5
        tensor.data.uniform_(-stdv, stdv)


class GCNConv(nn.Module):
    """Message passing with symmetric normalisation, over an edge list."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.weight = Parameter(torch.Tensor(in_channels, out_channels))
        self.bias = P(torch.zeros(out_channels))
        glorot(self.weight)

    @staticmethod
    def norm(edge_index, num_nodes, dtype=None):
        loop_index = torch.arange(0, num_nodes, dtype=torch.long, device=edge_index.device)
        edge_index = torch.cat([edge_index, loop_index.unsqueeze(0).repeat(2, 1)], dim=1)
        edge_weight = torch.ones((edge_index.size(1),), dtype=dtype, device=edge_index.device)
        row, col = edge_index
        deg = torch.zeros(num_nodes, dtype=edge_weight.dtype).scatter_add_(0, row, edge_weight)
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        return edge_index, deg_inv_sqrt[row] * edge_weight * deg_inv_sqrt[col]

    def forward(self, x, edge_index):
        x = torch.matmul(x, self.weight)
        edge_index, norm = self.norm(edge_index, x.size(0), x.dtype)
        messages = norm.view(-1, 1) * x.index_select(0, edge_index[0])
        out = torch.zeros_like(x)
        out = out.index_add(0, edge_index[1], messages)
        return out + self.bias


class GCN(nn.Module):
    def __init__(self, d=5, hidden=8, classes=3):
        super().__init__()
        self.conv1 = GCNConv(d, hidden)
        self.conv2 = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.0, training=self.training)
        return F.log_softmax(self.conv2(x, edge_index), dim=1)


class GATConv(nn.Module):
    """Attention over edges: softmax over the neighbours with scatter_reduce."""

    def __init__(self, in_channels, out_channels, heads=2, negative_slope=0.2):
        super().__init__()
        self.heads, self.out_channels, self.negative_slope = heads, out_channels, negative_slope
        self.lin = Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        self.lin.reset_parameters()
        glorot(self.att_src)
        glorot(self.att_dst)

    def forward(self, x, edge_index):
        H, C, N = self.heads, self.out_channels, x.size(0)
        x = self.lin(x).view(-1, H, C)
        alpha_src, alpha_dst = (x * self.att_src).sum(-1), (x * self.att_dst).sum(dim=-1)
        src, dst = edge_index[0], edge_index[1]
        alpha = F.leaky_relu(alpha_src[src] + alpha_dst[dst], self.negative_slope)
        index = dst.unsqueeze(-1).expand_as(alpha)
        amax = torch.full((N, H), float("-inf"), dtype=alpha.dtype).scatter_reduce(0, index, alpha.detach(), reduce="amax", include_self=True)
        alpha = (alpha - amax[dst]).exp()
        total = torch.zeros(N, H).scatter_add(0, index, alpha) + 1e-16
        alpha = alpha / total[dst]
        out = x.new_zeros(N, H, C)
        out.index_add_(0, dst, x[src] * alpha.unsqueeze(-1))
        return out.flatten(1)


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([GATConv(5, 4), GATConv(8, 3)])
        self.out = nn.Linear(6, 2)

    def forward(self, x, edge_index, batch):
        for conv in self.convs[:-1]:
            x = F.elu(conv(x, edge_index))
        x = self.convs[-1](x, edge_index)
        size = int(batch.max()) + 1
        pooled = torch.zeros(size, x.shape[1]).index_reduce(0, batch, x, "mean", include_self=False)
        return self.out(pooled)


def graph(d):
    return d.normal(7, 5), d.integers(7, 2, 14)


class EGNN(nn.Module):
    """Equivariant: distances in, coordinates out, all pairs."""

    def __init__(self, h=6):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(2 * h + 1, 12), nn.SiLU(), nn.Linear(12, 12), nn.SiLU())
        self.coord = nn.Sequential(nn.Linear(12, 6), nn.SiLU(), nn.Linear(6, 1, bias=False))
        self.node = nn.Sequential(nn.Linear(h + 12, 12), nn.SiLU(), nn.Linear(12, h))

    def forward(self, h, x):
        n = h.size(0)
        row, col = torch.where(~torch.eye(n, dtype=torch.bool))
        diff = x[row] - x[col]
        radial = torch.sum(diff**2, 1, keepdim=True)
        m = self.edge(torch.cat([h[row], h[col], radial], dim=1))
        trans = diff / (torch.sqrt(radial) + 1) * self.coord(m)
        agg = x.new_full((n, 3), 0).scatter_add_(0, row.unsqueeze(-1).expand(-1, 3), trans)
        msg = m.new_zeros(n, m.size(1)).scatter_add_(0, row.unsqueeze(-1).expand(-1, m.size(1)), m)
        return h + self.node(torch.cat([h, msg], dim=1)), x + agg / (n - 1)


class TNet(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.k = k
        self.conv1, self.conv2 = torch.nn.Conv1d(k, 8, 1), torch.nn.Conv1d(8, 16, 1)
        self.bn1, self.bn2 = nn.BatchNorm1d(8), nn.BatchNorm1d(16)
        self.fc = nn.Linear(16, k * k)

    def forward(self, x):
        batchsize = x.size()[0]
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = torch.max(x, 2, keepdim=True)[0]
        x = self.fc(x.view(-1, 16))
        iden = torch.eye(self.k).flatten().view(1, self.k * self.k).repeat(batchsize, 1)
        x = x + iden
        return x.view(-1, self.k, self.k)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stn = TNet()
        self.conv1, self.conv2 = nn.Conv1d(3, 8, 1), nn.Conv1d(8, 16, 1)
        self.bn1, self.bn2 = nn.BatchNorm1d(8), nn.BatchNorm1d(16)
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        n_pts = x.size()[2]
        trans = self.stn(x)
        x = torch.bmm(x.transpose(2, 1), trans).transpose(2, 1)
        pointfeat = F.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(pointfeat))
        x, which = torch.max(x, 2, keepdim=True)
        x = x.view(-1, 16, 1).repeat(1, 1, n_pts)
        x = torch.cat([x, pointfeat], 1)
        return F.log_softmax(self.head(x.transpose(1, 2)), dim=-1), trans, which


def pointnet_loss(model, out, inputs):
    pred, trans, _ = out
    target = torch.arange(pred.shape[0] * pred.shape[1]) % 4
    d = trans.size()[1]
    I = torch.eye(d)[None, :, :]
    reg = torch.mean(torch.norm(torch.bmm(trans, trans.transpose(2, 1)) - I, dim=(1, 2)))
    return F.nll_loss(pred.reshape(-1, 4), target) + reg * 0.001


def square_distance(src, dst):
    return torch.sum((src[:, :, None] - dst[:, None]) ** 2, dim=-1)


class PointNet2(nn.Module):
    """Farthest point sampling, ball query, grouping by batched indices."""

    def __init__(self, npoint=4, radius=1.5, nsample=3):
        super().__init__()
        self.npoint, self.radius, self.nsample = npoint, radius, nsample
        self.mlp = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 8, 1))
        self.fc = nn.Linear(8, 3)

    def farthest_point_sample(self, xyz, npoint):
        B, N, C = xyz.shape
        centroids = torch.zeros(B, npoint, dtype=torch.long)
        distance = torch.ones(B, N) * 1e10
        farthest = torch.zeros((B,), dtype=torch.long)
        batch_indices = torch.arange(B, dtype=torch.long)
        for i in range(npoint):
            centroids[:, i] = farthest
            centroid = xyz[batch_indices, farthest, :].view(B, 1, 3)
            dist = torch.sum((xyz - centroid) ** 2, -1)
            mask = dist < distance
            distance[mask] = dist[mask]
            farthest = torch.max(distance, -1)[1]
        return centroids

    def index_points(self, points, idx):
        B = points.shape[0]
        view_shape = list(idx.shape)
        view_shape[1:] = [1] * (len(view_shape) - 1)
        repeat_shape = list(idx.shape)
        repeat_shape[0] = 1
        batch_indices = torch.arange(B, dtype=torch.long).view(view_shape).repeat(repeat_shape)
        return points[batch_indices, idx, :]

    def forward(self, xyz):
        B, N, _ = xyz.shape
        centres = self.index_points(xyz, self.farthest_point_sample(xyz, self.npoint))
        group_idx = torch.arange(N, dtype=torch.long).view(1, 1, N).repeat([B, self.npoint, 1])
        group_idx[square_distance(centres, xyz) > self.radius**2] = N
        group_idx = group_idx.sort(dim=-1)[0][:, :, : self.nsample]
        group_first = group_idx[:, :, 0].view(B, self.npoint, 1).repeat([1, 1, self.nsample])
        mask = group_idx == N
        group_idx[mask] = group_first[mask]
        grouped = self.index_points(xyz, group_idx) - centres.view(B, self.npoint, 1, 3)
        features = self.mlp(grouped.permute(0, 3, 2, 1))
        return self.fc(torch.max(features, 2)[0].mean(-1))


class DeepSets(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, 8), nn.ELU(inplace=True), nn.Linear(8, 8))
        self.rho = nn.Sequential(nn.Linear(8, 8), nn.ELU(), nn.Linear(8, 1))

    def forward(self, x, mask):
        phi = self.phi(x) * mask[..., None]
        return self.rho(phi.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)).squeeze(-1)


class MAB(nn.Module):
    def __init__(self, dim_Q, dim_K, dim_V, num_heads, ln=False):
        super().__init__()
        self.dim_V, self.num_heads = dim_V, num_heads
        self.fc_q, self.fc_k, self.fc_v = nn.Linear(dim_Q, dim_V), nn.Linear(dim_K, dim_V), nn.Linear(dim_K, dim_V)
        if ln:
            self.ln0 = nn.LayerNorm(dim_V)
        self.fc_o = nn.Linear(dim_V, dim_V)

    def forward(self, Q, K):
        Q = self.fc_q(Q)
        K, V = self.fc_k(K), self.fc_v(K)
        dim_split = self.dim_V // self.num_heads
        Q_ = torch.cat(Q.split(dim_split, 2), 0)
        K_ = torch.cat(K.split(dim_split, 2), 0)
        V_ = torch.cat(V.split(dim_split, 2), 0)
        A = torch.softmax(Q_.bmm(K_.transpose(1, 2)) / (self.dim_V**0.5), 2)
        O = torch.cat((Q_ + A.bmm(V_)).split(Q.size(0), 0), 2)
        O = O if getattr(self, "ln0", None) is None else self.ln0(O)
        return O + F.relu(self.fc_o(O))


class SetTransformer(nn.Module):
    def __init__(self, dim=8, inducing=3):
        super().__init__()
        self.I = nn.Parameter(torch.Tensor(1, inducing, dim))
        nn.init.xavier_uniform_(self.I)
        self.mab0, self.mab1 = MAB(dim, 2, dim, 2, ln=True), MAB(2, dim, dim, 2, ln=True)
        self.S = nn.Parameter(torch.Tensor(1, 2, dim))
        nn.init.xavier_uniform_(self.S)
        self.pma = MAB(dim, dim, dim, 2)
        self.dec = nn.Linear(dim, 3)

    def forward(self, X):
        H = self.mab0(self.I.repeat(X.size(0), 1, 1), X)
        X = self.mab1(X, H)
        return self.dec(self.pma(self.S.repeat(X.size(0), 1, 1), X))


CASES = {
    "gcn": Case(GCN, graph, lambda m, out, i: F.nll_loss(out[:4], torch.tensor([0, 1, 2, 0])), compiled=True),
    "gat": Case(GAT, lambda d: (*graph(d), torch.tensor([0, 0, 0, 1, 1, 1, 1])), breaks=2),
    "egnn": Case(EGNN, lambda d: (d.normal(5, 6), d.normal(5, 3)), breaks=2),
    "pointnet": Case(PointNet, lambda d: (d.normal(3, 3, 10),), pointnet_loss, rtol=5e-3),
    "pointnet2": Case(PointNet2, lambda d: (d.normal(2, 8, 3),), breaks=22),
    "deep_sets": Case(DeepSets, lambda d: (d.normal(4, 5, 3), d.mask(4, 5))),
    "set_transformer": Case(SetTransformer, lambda d: (d.normal(2, 6, 2),)),
}
