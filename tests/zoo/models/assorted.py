"""Everything else: metric learning, differential equations, fields, recommendation, adapters, custom pieces."""
import math
from typing import Dict

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function

from tests.zoo.case import Case


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.convnet = nn.Sequential(nn.Conv2d(1, 4, 5), nn.PReLU(), nn.MaxPool2d(2, stride=2), nn.Conv2d(4, 8, 3), nn.PReLU())
        self.fc = nn.Sequential(nn.Linear(8 * 4 * 4, 16), nn.PReLU(), nn.Linear(16, 4))

    def get_embedding(self, x):
        output = self.convnet(x)
        output = output.view(output.size()[0], -1)
        return F.normalize(self.fc(output), p=2, dim=1)

    def forward(self, x1, x2, x3):
        return self.get_embedding(x1), self.get_embedding(x2), self.get_embedding(x3)


def triplet(model, out, inputs):
    a, p, n = out
    loss = nn.TripletMarginLoss(margin=0.5)(a, p, n)
    loss = loss + F.cosine_embedding_loss(a, n, -torch.ones(a.size(0)), margin=0.2)
    distances = torch.cdist(a, n, p=2)
    hardest = distances.topk(1, largest=False).values.mean()
    return loss + F.margin_ranking_loss(F.pairwise_distance(a, p), F.pairwise_distance(a, n), -torch.ones(a.size(0))) - 0.1 * hardest


class NTXent(nn.Module):
    """SimCLR: both views in one batch, the diagonal left out of the softmax."""

    def __init__(self, temperature=0.5):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 4, bias=False))
        self.temperature = temperature

    def forward(self, x_i, x_j):
        z = torch.cat([self.encoder(x_i), self.encoder(x_j)], dim=0)
        n = z.shape[0]
        sim = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2) / self.temperature
        labels = torch.cat([torch.arange(n // 2) for i in range(2)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        mask = torch.eye(n, dtype=torch.bool)
        labels = labels[~mask].view(n, -1)
        sim = sim[~mask].view(n, -1)
        positives = sim[labels.bool()].view(n, -1)
        negatives = sim[~labels.bool()].view(n, -1)
        logits = torch.cat([positives, negatives], dim=1)
        return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long)), logits


# --- differential equations ----------------------------------------------------------------------
def rk4_step(func, y, t, h):
    k1 = h * func(t, y)
    k2 = h * func(t + h / 2.0, y + k1 / 2)
    k3 = h * func(t + h / 2.0, y + k2 / 2)
    k4 = h * func(t + h, y + k3)
    return y + 1 / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def euler_step(func, y, t, h):
    return y + h * func(t, y)


class NeuralODE(nn.Module):
    SOLVERS = {"rk4": rk4_step, "euler": euler_step}

    def __init__(self, dim=3, method="rk4", steps=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 12), nn.Tanh(), nn.Linear(12, dim))
        self.method, self.steps = method, steps
        self.nfe = 0

    def dynamics(self, t, y):
        self.nfe += 1
        return self.net(torch.cat([y, t.expand(y.shape[0], 1)], dim=-1))

    def forward(self, y0):
        t = torch.linspace(0.0, 1.0, self.steps + 1)
        solution = [y0]
        step = self.SOLVERS[self.method]
        for t0, t1 in zip(t[:-1], t[1:]):
            solution.append(step(self.dynamics, solution[-1], t0, t1 - t0))
        return torch.stack(solution)


class HamiltonianNet(nn.Module):
    """A vector field from the gradient of a scalar network: grad within forward."""

    def __init__(self, d=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * d, 12), nn.Tanh(), nn.Linear(12, 1))
        self.d = d

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            H = self.net(x).sum()
            (dH,) = torch.autograd.grad(H, x, create_graph=True)
        dq, dp = dH.split(self.d, dim=-1)
        return torch.cat([dp, -dq], dim=-1)


# --- fields --------------------------------------------------------------------------------------
class Sine(nn.Module):
    def __init__(self, w0=30.0):
        super().__init__()
        self.w0 = w0

    def forward(self, x):
        return torch.sin(self.w0 * x)


class Siren(nn.Module):
    def __init__(self, hidden=12, layers=2):
        super().__init__()
        net = []
        for i in range(layers):
            linear = nn.Linear(2 if i == 0 else hidden, hidden)
            with torch.no_grad():
                bound = 1 / 2 if i == 0 else math.sqrt(6 / hidden) / 30
                linear.weight.uniform_(-bound, bound)
            net += [linear, Sine(3.0)]
        self.net = nn.Sequential(*net, nn.Linear(hidden, 1))

    def forward(self, coords):
        coords = coords.clone().detach().requires_grad_(True)
        return self.net(coords), coords


def siren_loss(model, out, inputs):
    values, coords = out
    target = torch.sin(inputs[0].sum(-1, keepdim=True))
    return ((values - target) ** 2).mean()


class Embedder:
    def __init__(self, **kwargs):
        self.kwargs = kwargs
        self.create_embedding_fn()

    def create_embedding_fn(self):
        embed_fns = []
        d, out_dim = self.kwargs["input_dims"], 0
        if self.kwargs["include_input"]:
            embed_fns.append(lambda x: x)
            out_dim += d
        freq_bands = 2.0 ** torch.linspace(0.0, self.kwargs["max_freq_log2"], steps=self.kwargs["num_freqs"])
        for freq in freq_bands:
            for p_fn in self.kwargs["periodic_fns"]:
                embed_fns.append(lambda x, p_fn=p_fn, freq=freq: p_fn(x * freq))
                out_dim += d
        self.embed_fns, self.out_dim = embed_fns, out_dim

    def embed(self, inputs):
        return torch.cat([fn(inputs) for fn in self.embed_fns], -1)


class NeRF(nn.Module):
    """Rays to colours: positional encoding, an MLP with a skip, alpha compositing by cumprod, inverse-CDF resampling."""

    def __init__(self, width=12, samples=5, fine=4):
        super().__init__()
        self.embedder = Embedder(include_input=True, input_dims=3, max_freq_log2=2, num_freqs=3, periodic_fns=[torch.sin, torch.cos])
        d = self.embedder.out_dim
        self.pts_linears = nn.ModuleList([nn.Linear(d, width)] + [nn.Linear(width, width) if i + 1 not in [1] else nn.Linear(width + d, width) for i in range(2)])
        self.skips = [1]
        self.alpha_linear, self.rgb_linear = nn.Linear(width, 1), nn.Linear(width + 3, 3)
        self.samples, self.fine = samples, fine

    def query(self, pts, viewdirs):
        embedded = self.embedder.embed(pts.reshape(-1, 3))
        h = embedded
        for i, l in enumerate(self.pts_linears):
            h = F.relu(l(h))
            if i + 1 in self.skips:
                h = torch.cat([embedded, h], -1)
        dirs = viewdirs[:, None].expand(pts.shape).reshape(-1, 3)
        raw = torch.cat([self.rgb_linear(torch.cat([h, dirs], -1)), self.alpha_linear(h)], -1)
        return raw.reshape(list(pts.shape[:-1]) + [raw.shape[-1]])

    @staticmethod
    def raw2outputs(raw, z_vals, rays_d, white_bkgd=True):
        raw2alpha = lambda raw, dists, act_fn=F.relu: 1.0 - torch.exp(-act_fn(raw) * dists)  # noqa: E731
        dists = z_vals[..., 1:] - z_vals[..., :-1]
        dists = torch.cat([dists, torch.Tensor([1e10]).to(dists.device).expand(dists[..., :1].shape)], -1)
        dists = dists * torch.norm(rays_d[..., None, :], dim=-1)
        rgb = torch.sigmoid(raw[..., :3])
        alpha = raw2alpha(raw[..., 3], dists)
        weights = alpha * torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
        rgb_map = torch.sum(weights[..., None] * rgb, -2)
        depth_map = torch.sum(weights * z_vals, -1)
        acc_map = torch.sum(weights, -1)
        disp_map = 1.0 / torch.max(1e-10 * torch.ones_like(depth_map), depth_map / torch.clamp(acc_map, min=1e-6))
        if white_bkgd:
            rgb_map = rgb_map + (1.0 - acc_map[..., None])
        return rgb_map, disp_map, weights

    @staticmethod
    def sample_pdf(bins, weights, N_samples):
        weights = weights + 1e-5
        pdf = weights / torch.sum(weights, -1, keepdim=True)
        cdf = torch.cumsum(pdf, -1)
        cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
        u = torch.linspace(0.05, 0.95, steps=N_samples)
        u = u.expand(list(cdf.shape[:-1]) + [N_samples]).contiguous()
        inds = torch.searchsorted(cdf, u, right=True)
        below = torch.max(torch.zeros_like(inds - 1), inds - 1)
        above = torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)
        inds_g = torch.stack([below, above], -1)
        matched_shape = [inds_g.shape[0], inds_g.shape[1], cdf.shape[-1]]
        cdf_g = torch.gather(cdf.unsqueeze(1).expand(matched_shape), 2, inds_g)
        bins_g = torch.gather(bins.unsqueeze(1).expand(matched_shape), 2, inds_g)
        denom = cdf_g[..., 1] - cdf_g[..., 0]
        denom = torch.where(denom < 1e-5, torch.ones_like(denom), denom)
        t = (u - cdf_g[..., 0]) / denom
        return bins_g[..., 0] + t * (bins_g[..., 1] - bins_g[..., 0])

    def forward(self, rays_o, rays_d, near: float = 1.0, far: float = 3.0):
        viewdirs = rays_d / torch.norm(rays_d, dim=-1, keepdim=True)
        t_vals = torch.linspace(0.0, 1.0, steps=self.samples)
        z_vals = (near * (1.0 - t_vals) + far * t_vals).expand([rays_o.shape[0], self.samples])
        pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
        rgb, disp, weights = self.raw2outputs(self.query(pts, viewdirs), z_vals, rays_d)
        mids = 0.5 * (z_vals[..., 1:] + z_vals[..., :-1])
        z_samples = self.sample_pdf(mids, weights[..., 1:-1], self.fine).detach()
        z_vals, _ = torch.sort(torch.cat([z_vals, z_samples], -1), -1)
        pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
        fine, _, _ = self.raw2outputs(self.query(pts, viewdirs), z_vals, rays_d)
        return {"rgb": fine, "rgb0": rgb, "disp": disp}


def img2mse(model, out, inputs):
    target = torch.full_like(out["rgb"], 0.4)
    return torch.mean((out["rgb"] - target) ** 2) + torch.mean((out["rgb0"] - target) ** 2)


# --- capsules, memories --------------------------------------------------------------------------
def squash(s, dim=-1):
    squared_norm = torch.sum(s**2, dim=dim, keepdim=True)
    return squared_norm / (1 + squared_norm) * s / (torch.sqrt(squared_norm) + 1e-8)


class CapsNet(nn.Module):
    def __init__(self, routing=2):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 5)
        self.primary = nn.Conv2d(8, 8, 3, stride=2)
        self.W = nn.Parameter(0.01 * torch.randn(1, 3, 18, 4, 4))
        self.routing_iterations = routing
        self.decoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(inplace=True), nn.Linear(16, 121), nn.Sigmoid())

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = self.primary(x)
        x = squash(x.view(x.size(0), 2, 4, -1).permute(0, 1, 3, 2).reshape(x.size(0), -1, 4))
        x = x.unsqueeze(1).unsqueeze(4)
        u_hat = torch.matmul(self.W, x).squeeze(-1)
        temp_u_hat = u_hat.detach()
        b = torch.zeros(x.size(0), 3, 18, 1)
        for route_iter in range(self.routing_iterations - 1):
            c = b.softmax(dim=1)
            v = squash((c * temp_u_hat).sum(dim=2))
            b += torch.matmul(temp_u_hat, v.unsqueeze(-1))
        v = squash((b.softmax(dim=1) * u_hat).sum(dim=2))
        classes = (v**2).sum(dim=-1) ** 0.5
        _, max_length_indices = classes.max(dim=1)
        masked = torch.eye(3).index_select(dim=0, index=max_length_indices.data)
        reconstruction = self.decoder((v * masked[:, :, None]).view(x.size(0), -1))
        return classes, reconstruction


def margin_loss(model, out, inputs):
    classes, reconstruction = out
    labels = F.one_hot(torch.tensor([0, 2]), 3).float()
    left = F.relu(0.9 - classes, inplace=True) ** 2
    right = F.relu(classes - 0.1, inplace=True) ** 2
    loss = (labels * left + 0.5 * (1.0 - labels) * right).sum()
    return (loss + 0.0005 * nn.MSELoss(reduction="sum")(reconstruction, inputs[0].view(2, -1))) / 2


class Hopfield(nn.Module):
    """Modern Hopfield retrieval iterated to a fixed point, stopped by a test on the state."""

    def __init__(self, d=6, patterns=5, beta=2.0, max_steps=5, eps=1e-3):
        super().__init__()
        self.stored = nn.Parameter(torch.randn(patterns, d))
        self.query, self.beta, self.max_steps, self.eps = nn.Linear(d, d), beta, max_steps, eps

    def forward(self, x):
        state = self.query(x)
        for step in range(self.max_steps):
            new = torch.softmax(self.beta * state @ self.stored.T, dim=-1) @ self.stored
            if torch.linalg.norm(new - state, dim=-1).max() < self.eps:
                break
            state = new
        return state


# --- recommendation ------------------------------------------------------------------------------
class DLRM(nn.Module):
    def __init__(self, m=4, sizes=(7, 5), mlp_bot=(3, 8, 4), mlp_top=(7, 8, 1)):
        super().__init__()
        self.emb_l = nn.ModuleList([nn.EmbeddingBag(n, m, mode="sum" if i else "mean", sparse=False) for i, n in enumerate(sizes)])
        self.bot_l, self.top_l = self.create_mlp(mlp_bot, -1), self.create_mlp(mlp_top, len(mlp_top) - 2)

    def create_mlp(self, ln, sigmoid_layer):
        layers = nn.ModuleList()
        for i in range(0, len(ln) - 1):
            layers.append(nn.Linear(int(ln[i]), int(ln[i + 1]), bias=True))
            layers.append(nn.Sigmoid() if i == sigmoid_layer else nn.ReLU())
        return torch.nn.Sequential(*layers)

    def interact_features(self, x, ly):
        (batch_size, d) = x.shape
        T = torch.cat([x] + ly, dim=1).view((batch_size, -1, d))
        Z = torch.bmm(T, torch.transpose(T, 1, 2))
        _, ni, nj = Z.shape
        li = torch.tensor([i for i in range(ni) for j in range(i)])
        lj = torch.tensor([j for i in range(nj) for j in range(i)])
        Zflat = Z[:, li, lj]
        return torch.cat([x] + [Zflat], dim=1)

    def forward(self, dense_x, lS_o, lS_i):
        x = self.bot_l(dense_x)
        ly = []
        for k, sparse_index_group_batch in enumerate(lS_i):
            ly.append(self.emb_l[k](sparse_index_group_batch, lS_o[k]))
        p = self.top_l(self.interact_features(x, ly))
        return torch.clamp(p, min=0.01, max=0.99)


class DeepFM(nn.Module):
    """First and second order interactions beside a deep part; field offsets into one table."""

    def __init__(self, fields=(4, 5, 6), dim=4):
        super().__init__()
        self.register_buffer("offsets", torch.tensor((0, *torch.cumsum(torch.tensor(fields), 0)[:-1].tolist())).unsqueeze(0))
        self.fc = nn.Embedding(sum(fields), 1)
        self.embedding = nn.Embedding(sum(fields), dim, max_norm=None)
        self.mlp = nn.Sequential(nn.Linear(len(fields) * dim, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(p=0.0), nn.Linear(8, 1))
        self.bias = nn.Parameter(torch.zeros((1,)))

    def forward(self, x):
        x = x + self.offsets
        e = self.embedding(x)
        fm = 0.5 * (torch.sum(e, dim=1) ** 2 - torch.sum(e**2, dim=1)).sum(dim=1, keepdim=True)
        out = torch.sum(self.fc(x), dim=1) + self.bias + fm + self.mlp(e.flatten(start_dim=1))
        return torch.sigmoid(out.squeeze(1))


# --- adapters, experts at play with modules ------------------------------------------------------
class LoRALinear(nn.Module):
    def __init__(self, linear: nn.Linear, r: int = 2, alpha: float = 4.0):
        super().__init__()
        self.base = linear
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.zeros(r, linear.in_features))
        self.lora_B = nn.Parameter(torch.zeros(linear.out_features, r))
        self.scaling = alpha / r
        self.merged = False

    def train(self, mode: bool = True):
        super().train(mode)
        delta = (self.lora_B @ self.lora_A) * self.scaling
        if mode and self.merged:
            self.base.weight.data -= delta.detach()
            self.merged = False
        elif not mode and not self.merged:
            self.base.weight.data += delta.detach()
            self.merged = True
        return self

    def forward(self, x):
        if self.merged:
            return self.base(x)
        return self.base(x) + F.linear(F.linear(x, self.lora_A), self.lora_B) * self.scaling


class Adapted(nn.Module):
    """A frozen stack whose Linear layers are replaced after construction; a forward hook collects activations."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
        for name, module in list(self.backbone.named_children()):
            if isinstance(module, nn.Linear):
                setattr(self.backbone, name, LoRALinear(module))
        self.norm = nn.LayerNorm(4, elementwise_affine=False)
        self.features: Dict[str, torch.Tensor] = {}
        self.backbone[3].register_forward_hook(self._save("tanh"))

    def _save(self, name):
        def hook(module, args, output):
            self.features[name] = output
        return hook

    def forward(self, x):
        out = self.norm(self.backbone(x))
        return out, self.features["tanh"].mean(-1)


class Quantize(Function):
    """Rounding with a straight-through gradient inside the range."""

    @staticmethod
    def forward(ctx, input, levels):
        ctx.save_for_backward(input)
        ctx.levels = levels
        return torch.round(input.clamp(0, 1) * levels) / levels

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[(input < 0) | (input > 1)] = 0
        return grad_input, None


class MemoryEfficientSwish(Function):
    @staticmethod
    def forward(ctx, i):
        result = i * torch.sigmoid(i)
        ctx.save_for_backward(i)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        sigmoid_i = torch.sigmoid(i)
        return grad_output * (sigmoid_i * (1 + i * (1 - sigmoid_i)))


class GradReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lambd, None


class DANN(nn.Module):
    """Three custom functions: gradient reversal, quantised activations, a swish that recomputes."""

    def __init__(self):
        super().__init__()
        self.features = nn.Linear(6, 8)
        self.classifier, self.domain = nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x):
        f = MemoryEfficientSwish.apply(self.features(x))
        f = Quantize.apply(f, 15)
        return self.classifier(f), self.domain(GradReverse.apply(f, 0.5))


def dann_loss(model, out, inputs):
    return F.cross_entropy(out[0], torch.tensor([0, 1, 2, 1])) + F.cross_entropy(out[1], torch.tensor([0, 0, 1, 1]))


class TextCNN(nn.Module):
    def __init__(self, vocab=20, dim=6, kernels=(2, 3), n=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList([nn.Conv2d(1, n, (k, dim)) for k in kernels])
        self.fc = nn.Linear(len(kernels) * n, 3)

    def forward(self, x):
        x = self.embed(x).unsqueeze(1)
        x = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        x = [F.max_pool1d(i, i.size(2)).squeeze(2) for i in x]
        return self.fc(torch.cat(x, 1))


class HighwayBiDAF(nn.Module):
    """Highway layers and two-way attention with a masked softmax."""

    def __init__(self, d=4):
        super().__init__()
        self.gates = nn.ModuleList([nn.Linear(d, d) for _ in range(2)])
        self.transforms = nn.ModuleList([nn.Linear(d, d) for _ in range(2)])
        self.c_weight, self.q_weight, self.cq_weight = (nn.Parameter(torch.zeros(*s)) for s in ((d, 1), (d, 1), (1, 1, d)))
        for weight in (self.c_weight, self.q_weight, self.cq_weight):
            nn.init.xavier_uniform_(weight)

    def highway(self, x):
        for gate, transform in zip(self.gates, self.transforms):
            g = torch.sigmoid(gate(x))
            x = g * F.relu(transform(x)) + (1 - g) * x
        return x

    @staticmethod
    def masked_softmax(logits, mask, dim=-1, log_softmax=False):
        mask = mask.type(torch.float32)
        masked_logits = mask * logits + (1 - mask) * -1e30
        return (F.log_softmax if log_softmax else F.softmax)(masked_logits, dim)

    def forward(self, c, q, c_mask, q_mask):
        c, q = self.highway(c), self.highway(q)
        batch, c_len, q_len = c.size(0), c.size(1), q.size(1)
        s0 = torch.matmul(c, self.c_weight).expand([-1, -1, q_len])
        s1 = torch.matmul(q, self.q_weight).transpose(1, 2).expand([-1, c_len, -1])
        s = s0 + s1 + torch.matmul(c * self.cq_weight, q.transpose(1, 2))
        c_mask, q_mask = c_mask.view(batch, c_len, 1), q_mask.view(batch, 1, q_len)
        s1, s2 = self.masked_softmax(s, q_mask, dim=2), self.masked_softmax(s, c_mask, dim=1)
        a = torch.bmm(s1, q)
        b = torch.bmm(torch.bmm(s1, s2.transpose(1, 2)), c)
        return torch.cat([c, a, c * a, c * b], dim=2)


class CRF(nn.Module):
    """Linear chain: forward algorithm by logsumexp, Viterbi in evaluation."""

    def __init__(self, tags=4, d=5):
        super().__init__()
        self.emit = nn.Linear(d, tags)
        self.start_transitions = nn.Parameter(torch.empty(tags))
        self.end_transitions = nn.Parameter(torch.empty(tags))
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        for p in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(p, -0.1, 0.1)

    def _score(self, emissions, tags, mask):
        seq_length, batch_size = tags.shape
        mask = mask.float()
        score = self.start_transitions[tags[0]]
        score += emissions[0, torch.arange(batch_size), tags[0]]
        for i in range(1, seq_length):
            score += self.transitions[tags[i - 1], tags[i]] * mask[i]
            score += emissions[i, torch.arange(batch_size), tags[i]] * mask[i]
        seq_ends = mask.long().sum(dim=0) - 1
        last_tags = tags[seq_ends, torch.arange(batch_size)]
        score += self.end_transitions[last_tags]
        return score

    def _normalizer(self, emissions, mask):
        score = self.start_transitions + emissions[0]
        for i in range(1, emissions.size(0)):
            next_score = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            next_score = torch.logsumexp(next_score, dim=1)
            score = torch.where(mask[i].unsqueeze(1), next_score, score)
        return torch.logsumexp(score + self.end_transitions, dim=1)

    def decode(self, emissions):
        score, history = self.start_transitions + emissions[0], []
        for i in range(1, emissions.size(0)):
            best, indices = (score.unsqueeze(2) + self.transitions).max(dim=1)
            score = best + emissions[i]
            history.append(indices)
        tags = [(score + self.end_transitions).argmax(dim=1)]
        for hist in reversed(history):
            tags.append(hist.gather(1, tags[-1].unsqueeze(1)).squeeze(1))
        tags.reverse()
        return torch.stack(tags)

    def forward(self, x, tags, mask):
        emissions = self.emit(x)
        if not self.training:
            return self.decode(emissions)
        return self._score(emissions, tags, mask) - self._normalizer(emissions, mask)


def crf_inputs(d):
    mask = torch.ones(5, 2, dtype=torch.bool)
    mask[3:, 1] = False
    return d.normal(5, 2, 5), d.integers(4, 5, 2), mask


CASES = {
    "siamese": Case(Siamese, lambda d: tuple(d.normal(3, 1, 16, 16) for _ in range(3)), triplet),
    "simclr": Case(NTXent, lambda d: (d.normal(4, 6), d.normal(4, 6)), lambda m, out, i: out[0], breaks=8, rtol=5e-3),
    "neural_ode_rk4": Case(NeuralODE, lambda d: (d.normal(4, 3),)),
    "neural_ode_euler": Case(lambda: NeuralODE(method="euler"), lambda d: (d.normal(4, 3),)),
    "hamiltonian": Case(HamiltonianNet, lambda d: (d.normal(4, 4),)),
    "siren": Case(Siren, lambda d: (d.uniform(6, 2, low=-1.0),), siren_loss, breaks=2),
    "nerf": Case(NeRF, lambda d: (d.normal(3, 3), d.normal(3, 3)), img2mse),
    "capsules": Case(CapsNet, lambda d: (d.uniform(2, 1, 11, 11),), margin_loss),
    "hopfield": Case(Hopfield, lambda d: (d.normal(3, 6),), breaks=8),
    "dlrm": Case(DLRM, lambda d: (d.normal(3, 3), [torch.tensor([0, 2, 3])] * 2, [d.integers(7, 6), d.integers(5, 6)]),
                 lambda m, out, i: F.binary_cross_entropy(out, torch.tensor([[1.0], [0.0], [1.0]]))),
    "deepfm": Case(DeepFM, lambda d: (d.integers(4, 5, 3),)),
    "lora": Case(Adapted, lambda d: (d.normal(4, 6),), frozen=("base",)),
    "custom_functions": Case(DANN, lambda d: (d.normal(4, 6),), dann_loss, breaks=9),
    "textcnn": Case(TextCNN, lambda d: (d.integers(20, 3, 7),)),
    "bidaf": Case(HighwayBiDAF, lambda d: (d.normal(2, 5, 4), d.normal(2, 3, 4), d.mask(2, 5), d.mask(2, 3))),
    "crf": Case(CRF, crf_inputs, lambda m, out, i: -out.sum() if out.is_floating_point() else out.float().sum()),
}
