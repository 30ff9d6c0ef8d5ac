"""Models that generate."""
import math
from abc import abstractmethod

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import Case


class VAE(nn.Module):
    def __init__(self, d=20, h=16, z=4):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc21 = nn.Linear(h, z)
        self.fc22 = nn.Linear(h, z)
        self.fc3 = nn.Linear(z, h)
        self.fc4 = nn.Linear(h, d)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std) if self.training else torch.zeros_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 20))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


class GivenVAE(VAE):
    """The noise is given, so that torch's results can be compared."""

    def forward(self, x, eps):
        mu, logvar = self.encode(x)
        return self.decode(eps.mul(logvar.mul(0.5).exp_()).add_(mu)), mu, logvar


def elbo(model, out, inputs):
    recon_x, mu, logvar = out
    BCE = F.binary_cross_entropy(recon_x, inputs[0].view(-1, 20), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (BCE + KLD) / len(inputs[0])


class VectorQuantizerEMA(nn.Module):
    def __init__(self, num_embeddings=8, embedding_dim=4, commitment_cost=0.25, decay=0.99, epsilon=1e-5):
        super().__init__()
        self._embedding_dim, self._num_embeddings = embedding_dim, num_embeddings
        self._embedding = nn.Embedding(num_embeddings, embedding_dim)
        self._embedding.weight.data.uniform_(-1 / num_embeddings, 1 / num_embeddings)
        self._embedding.weight.requires_grad = False
        self._commitment_cost = commitment_cost
        self.register_buffer("_ema_cluster_size", torch.ones(num_embeddings))
        self.register_buffer("_ema_w", torch.ones(num_embeddings, embedding_dim))
        self._decay, self._epsilon = decay, epsilon

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        input_shape = inputs.shape
        flat_input = inputs.view(-1, self._embedding_dim)
        weight = self._embedding.weight.clone()
        distances = (torch.sum(flat_input**2, dim=1, keepdim=True) + torch.sum(weight**2, dim=1)
                     - 2 * torch.matmul(flat_input, weight.t()))
        encoding_indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(encoding_indices.shape[0], self._num_embeddings, device=inputs.device)
        encodings.scatter_(1, encoding_indices, 1)
        quantized = torch.matmul(encodings, weight).view(input_shape)
        if self.training:
            with torch.no_grad():
                self._ema_cluster_size.mul_(self._decay).add_(encodings.sum(0), alpha=1 - self._decay)
                n = torch.sum(self._ema_cluster_size)
                self._ema_cluster_size.copy_((self._ema_cluster_size + self._epsilon) / (n + self._num_embeddings * self._epsilon) * n)
                dw = torch.matmul(encodings.t(), flat_input)
                self._ema_w.copy_(self._ema_w * self._decay + (1 - self._decay) * dw)
                self._embedding.weight.data.copy_(self._ema_w / self._ema_cluster_size.unsqueeze(1))
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        loss = self._commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = torch.mean(encodings, dim=0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity, encodings


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self._block = nn.Sequential(nn.ReLU(True), nn.Conv2d(channels, 4, 3, 1, 1, bias=False), nn.ReLU(True), nn.Conv2d(4, channels, 1, bias=False))

    def forward(self, x):
        return x + self._block(x)


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self._encoder = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 4, 2, 1), Residual(8), nn.ReLU(), nn.Conv2d(8, 4, 1))
        self._vq_vae = VectorQuantizerEMA()
        self._decoder = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), Residual(8), nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.ReLU(),
                                      nn.ConvTranspose2d(8, 3, 4, 2, 1))

    def forward(self, x):
        z = self._encoder(x)
        loss, quantized, perplexity, _ = self._vq_vae(z)
        x_recon = self._decoder(quantized)
        return loss, x_recon, perplexity


def vq_loss(model, out, inputs):
    return out[0] + F.mse_loss(out[1], inputs[0]) / 0.06


# --- adversarial ---------------------------------------------------------------------------------
def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, nz=6, ngf=4, nc=1):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 3, 2, 1, output_padding=1, bias=False), nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf=4, nc=1, norm=nn.BatchNorm2d, wrap=lambda m: m):
        super().__init__()
        self.main = nn.Sequential(
            wrap(nn.Conv2d(nc, ndf, 4, 2, 1, bias=False)), nn.LeakyReLU(0.2, inplace=True),
            wrap(nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False)), norm(ndf * 2) if norm else nn.Identity(), nn.LeakyReLU(0.2, inplace=True),
            wrap(nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False)),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


class DCGAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.d = Generator(), Discriminator()
        self.apply(weights_init)

    def forward(self, real, noise):
        fake = self.g(noise)
        return torch.sigmoid(self.d(real)), torch.sigmoid(self.d(fake.detach())), torch.sigmoid(self.d(fake)), fake


def gan_loss(model, out, inputs):
    criterion = nn.BCELoss()
    label = torch.full((out[0].size(0),), 1.0, dtype=torch.float)
    return criterion(out[0], label) + criterion(out[1], torch.zeros_like(label)) + criterion(out[2], label)


class WGANGP(nn.Module):
    """The critic's gradient penalty: a gradient within the forward pass."""

    def __init__(self):
        super().__init__()
        self.d = Discriminator(norm=None)

    def forward(self, real, fake, alpha):
        interpolates = (alpha * real + ((1 - alpha) * fake)).requires_grad_(True)
        d_interpolates = self.d(interpolates)
        gradients = torch.autograd.grad(outputs=d_interpolates, inputs=interpolates, grad_outputs=torch.ones_like(d_interpolates),
                                        create_graph=True, retain_graph=True, only_inputs=True)[0]
        gradients = gradients.view(gradients.size(0), -1)
        penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
        return self.d(fake).mean() - self.d(real).mean(), 10 * penalty


class SNGAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = Discriminator(norm=None, wrap=torch.nn.utils.spectral_norm)
        self.p = Discriminator(norm=None, wrap=torch.nn.utils.parametrizations.spectral_norm)

    def forward(self, real, fake):
        return self.d(real), self.d(fake), self.p(real)


def hinge(model, out, inputs):
    return F.relu(1.0 - out[0]).mean() + F.relu(1.0 + out[1]).mean() + F.softplus(-out[2]).mean()


# --- diffusion -----------------------------------------------------------------------------------
def timestep_embedding(timesteps, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half).to(device=timesteps.device)
    args = timesteps[:, None].float() * freqs[None]
    embedding = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
    if dim % 2:
        embedding = torch.cat([embedding, torch.zeros_like(embedding[:, :1])], dim=-1)
    return embedding


class TimestepBlock(nn.Module):
    @abstractmethod
    def forward(self, x, emb):
        """Apply the module to `x` given `emb` timestep embeddings."""


class TimestepSequential(nn.Sequential, TimestepBlock):
    def forward(self, x, emb):
        for layer in self:
            if isinstance(layer, TimestepBlock):
                x = layer(x, emb)
            else:
                x = layer(x)
        return x


class GroupNorm32(nn.GroupNorm):
    def forward(self, x):
        return super().forward(x.float()).type(x.dtype)


class ResBlock(TimestepBlock):
    def __init__(self, channels, emb_channels, out_channels=None):
        super().__init__()
        out_channels = out_channels or channels
        self.in_layers = nn.Sequential(GroupNorm32(2, channels), nn.SiLU(), nn.Conv2d(channels, out_channels, 3, padding=1))
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb_channels, 2 * out_channels))
        self.out_layers = nn.Sequential(GroupNorm32(2, out_channels), nn.SiLU(), nn.Dropout(p=0.0), nn.Conv2d(out_channels, out_channels, 3, padding=1))
        self.skip = nn.Identity() if out_channels == channels else nn.Conv2d(channels, out_channels, 1)

    def forward(self, x, emb):
        h = self.in_layers(x)
        emb_out = self.emb_layers(emb).type(h.dtype)
        while len(emb_out.shape) < len(h.shape):
            emb_out = emb_out[..., None]
        out_norm, out_rest = self.out_layers[0], self.out_layers[1:]
        scale, shift = torch.chunk(emb_out, 2, dim=1)
        h = out_norm(h) * (1 + scale) + shift
        return self.skip(x) + out_rest(h)


class AttentionBlock(nn.Module):
    def __init__(self, channels, heads=2):
        super().__init__()
        self.norm, self.qkv, self.proj = GroupNorm32(2, channels), nn.Conv1d(channels, channels * 3, 1), nn.Conv1d(channels, channels, 1)
        self.heads = heads

    def forward(self, x):
        b, c, *spatial = x.shape
        x = x.reshape(b, c, -1)
        qkv = self.qkv(self.norm(x)).reshape(b * self.heads, -1, x.shape[-1])
        ch = qkv.shape[1] // 3
        q, k, v = torch.split(qkv, ch, dim=1)
        scale = 1 / math.sqrt(math.sqrt(ch))
        weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)
        h = self.proj(torch.einsum("bts,bcs->bct", weight, v).reshape(b, -1, x.shape[-1]))
        return (x + h).reshape(b, c, *spatial)


class Downsample(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.op = nn.Conv2d(c, c, 3, stride=2, padding=1)

    def forward(self, x):
        return self.op(x)


class Upsample(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))


class DiffusionUNet(nn.Module):
    def __init__(self, c=4, mult=(1, 2)):
        super().__init__()
        self.c = c
        self.time_embed = nn.Sequential(nn.Linear(c, c * 4), nn.SiLU(), nn.Linear(c * 4, c * 4))
        self.input_blocks = nn.ModuleList([TimestepSequential(nn.Conv2d(1, c, 3, padding=1))])
        chans, ch = [c], c
        for level, m in enumerate(mult):
            layers = [ResBlock(ch, c * 4, m * c)]
            ch = m * c
            if level == 1:
                layers.append(AttentionBlock(ch))
            self.input_blocks.append(TimestepSequential(*layers))
            chans.append(ch)
            if level != len(mult) - 1:
                self.input_blocks.append(TimestepSequential(Downsample(ch)))
                chans.append(ch)
        self.middle_block = TimestepSequential(ResBlock(ch, c * 4), AttentionBlock(ch))
        self.output_blocks = nn.ModuleList([])
        for level, m in list(enumerate(mult))[::-1]:
            for i in range(2 if level == 0 else 2):
                if not chans:
                    break
                layers = [ResBlock(ch + chans.pop(), c * 4, m * c)]
                ch = m * c
                if level and i == 1:
                    layers.append(Upsample(ch))
                self.output_blocks.append(TimestepSequential(*layers))
        self.out = nn.Sequential(GroupNorm32(2, ch), nn.SiLU(), nn.Conv2d(ch, 1, 3, padding=1))

    def forward(self, x, timesteps):
        hs = []
        emb = self.time_embed(timestep_embedding(timesteps, self.c))
        h = x
        for module in self.input_blocks:
            h = module(h, emb)
            hs.append(h)
        h = self.middle_block(h, emb)
        for module in self.output_blocks:
            h = torch.cat([h, hs.pop()], dim=1)
            h = module(h, emb)
        return self.out(h)


def extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


class GaussianDiffusion(nn.Module):
    """Noise prediction in training; a DDIM loop without noise in evaluation."""

    def __init__(self, timesteps=10):
        super().__init__()
        self.model = DiffusionUNet()
        betas = np.linspace(1e-3, 0.2, timesteps, dtype=np.float64)
        alphas_cumprod = np.cumprod(1.0 - betas, axis=0)
        self.num_timesteps = int(timesteps)
        for name, array in (("betas", betas), ("alphas_cumprod", alphas_cumprod),
                            ("sqrt_alphas_cumprod", np.sqrt(alphas_cumprod)), ("sqrt_one_minus_alphas_cumprod", np.sqrt(1.0 - alphas_cumprod))):
            self.register_buffer(name, torch.tensor(array, dtype=torch.float32))

    def q_sample(self, x_start, t, noise):
        return (extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
                + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise)

    @torch.no_grad()
    def ddim_sample(self, x, steps=3):
        times = list(reversed(torch.linspace(0, self.num_timesteps - 1, steps).long().tolist()))
        for time, time_next in zip(times, times[1:] + [-1]):
            cond = torch.full((x.shape[0],), time, dtype=torch.long)
            eps = self.model(x, cond)
            alpha = self.alphas_cumprod[time]
            alpha_next = self.alphas_cumprod[time_next] if time_next >= 0 else torch.tensor(1.0)
            x0 = ((x - (1 - alpha).sqrt() * eps) / alpha.sqrt()).clamp_(-1.0, 1.0)
            x = x0 * alpha_next.sqrt() + (1 - alpha_next).sqrt() * eps
        return x

    def forward(self, x, t, noise):
        if not self.training:
            return self.ddim_sample(noise)
        predicted = self.model(self.q_sample(x, t, noise), t)
        return F.mse_loss(noise, predicted, reduction="none").mean(dim=list(range(1, x.ndim)))


# --- flows and autoregression --------------------------------------------------------------------
class Coupling(nn.Module):
    def __init__(self, d, mask):
        super().__init__()
        self.mask = nn.Parameter(mask, requires_grad=False)
        self.s = nn.Sequential(nn.Linear(d, 8), nn.LeakyReLU(), nn.Linear(8, d), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(d, 8), nn.LeakyReLU(), nn.Linear(8, d))

    def forward(self, x, reverse=False):
        x_ = x * self.mask
        s, t = self.s(x_) * (1 - self.mask), self.t(x_) * (1 - self.mask)
        if reverse:
            return x_ + (1 - self.mask) * (x - t) * torch.exp(-s)
        return x_ + (1 - self.mask) * (x * s.exp() + t), s.sum(dim=1)


class InvertibleLinear(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(d, d))[0])

    def forward(self, x):
        return x @ self.weight, torch.slogdet(self.weight)[1]

    def inverse(self, y):
        return y @ torch.inverse(self.weight)


class RealNVP(nn.Module):
    def __init__(self, d=4, layers=2):
        super().__init__()
        masks = torch.from_numpy(np.array([[0, 1] * (d // 2), [1, 0] * (d // 2)] * layers).astype(np.float32))
        self.layers = nn.ModuleList([Coupling(d, m) for m in masks])
        self.mix = InvertibleLinear(d)

    def forward(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for layer in self.layers:
            z, ld = layer(z)
            log_det_J += ld
        z, ld = self.mix(z)
        log_prob = -0.5 * (z**2 + math.log(2 * math.pi)).sum(-1) + log_det_J + ld
        back = self.mix.inverse(z)
        for layer in reversed(self.layers):
            back = layer(back, reverse=True)
        return log_prob, back


class MaskedConv2d(nn.Conv2d):
    def __init__(self, mask_type, *args, **kwargs):
        super().__init__(*args, **kwargs)
        assert mask_type in {"A", "B"}
        self.register_buffer("mask", self.weight.data.clone())
        _, _, kH, kW = self.weight.size()
        self.mask.fill_(1)
        self.mask[:, :, kH // 2, kW // 2 + (mask_type == "B"):] = 0
        self.mask[:, :, kH // 2 + 1:] = 0

    def forward(self, x):
        self.weight.data *= self.mask
        return super(MaskedConv2d, self).forward(x)


class PixelCNN(nn.Module):
    def __init__(self, fm=6):
        super().__init__()
        self.net = nn.Sequential(MaskedConv2d("A", 1, fm, 5, 1, 2, bias=False), nn.BatchNorm2d(fm), nn.ReLU(True),
                                 MaskedConv2d("B", fm, fm, 3, 1, 1, bias=False), nn.BatchNorm2d(fm), nn.ReLU(True), nn.Conv2d(fm, 4, 1))

    def forward(self, x):
        return self.net(x)


CASES = {
    "vae": Case(GivenVAE, lambda d: (d.uniform(4, 20), d.normal(4, 4)), elbo, compiled=True),
    "vae_sampling": Case(VAE, lambda d: (d.uniform(4, 20),), elbo, draws=True),
    "vqvae": Case(VQVAE, lambda d: (d.normal(2, 3, 16, 16),), vq_loss, frozen=("_embedding",)),
    "dcgan": Case(DCGAN, lambda d: (d.uniform(3, 1, 16, 16, low=-1.0), d.normal(3, 6, 1, 1)), gan_loss, rtol=5e-3),
    "wgan_gp": Case(WGANGP, lambda d: (d.normal(3, 1, 16, 16), d.normal(3, 1, 16, 16), d.uniform(3, 1, 1, 1)), lambda m, out, i: sum(out), grad_in_eval=True),
    "sngan": Case(SNGAN, lambda d: (d.normal(2, 1, 16, 16), d.normal(2, 1, 16, 16)), hinge),
    "diffusion": Case(GaussianDiffusion, lambda d: (d.normal(2, 1, 8, 8), d.integers(10, 2), d.normal(2, 1, 8, 8)),
                      lambda m, out, i: out.mean(), breaks=1),
    "realnvp": Case(RealNVP, lambda d: (d.normal(5, 4),), lambda m, out, i: -out[0].mean()),
    "pixelcnn": Case(PixelCNN, lambda d: (d.uniform(2, 1, 8, 8),), lambda m, out, i: F.cross_entropy(out, (i[0][:, 0] * 3).round().long())),
}
