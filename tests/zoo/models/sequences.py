"""Recurrent models, state spaces and sound."""
import math
import random
from typing import List

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.zoo.case import Case


class LSTMLanguageModel(nn.Module):
    """Word-level language model: tied weights, a hidden state carried from batch to batch."""

    def __init__(self, ntoken=20, ninp=12, nhid=12, nlayers=2, dropout=0.0, tie_weights=True, rnn_type="LSTM"):
        super(LSTMLanguageModel, self).__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        if rnn_type in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        else:
            self.rnn = nn.RNN(ninp, nhid, nlayers, nonlinearity={"RNN_TANH": "tanh", "RNN_RELU": "relu"}[rnn_type], dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        self.rnn_type, self.nhid, self.nlayers, self.ntoken = rnn_type, nhid, nlayers, ntoken

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))
        else:
            return weight.new_zeros(self.nlayers, bsz, self.nhid)

    def forward(self, input, hidden=None):
        if hidden is None:
            hidden = self.init_hidden(input.size(1))
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        output = self.drop(output)
        decoded = self.decoder(output)
        decoded = decoded.view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden


def nll(model, out, inputs):
    return nn.NLLLoss()(out[0], inputs[0].roll(-1, 0).view(-1))


class PackedTagger(nn.Module):
    """Bidirectional tagger over packed sequences, lengths not sorted."""

    def __init__(self, vocab=20, dim=8, tags=5):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim, num_layers=1, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(2 * dim, dim, batch_first=True)
        self.tag = nn.Linear(dim, tags)

    def forward(self, tokens, lengths):
        embedded = self.embedding(tokens)
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        output, (hidden, cell) = self.lstm(packed)
        output, _ = pad_packed_sequence(output, batch_first=True, total_length=tokens.size(1))
        summary = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
        output, last = self.gru(output + summary.unsqueeze(1))
        return self.tag(output), last.squeeze(0), cell


def tagger_inputs(d):
    lengths = torch.tensor([4, 7, 2])
    rows = [d.integers(20, int(n), low=1) for n in lengths]
    return pad_sequence(rows, batch_first=True, padding_value=0), lengths


def tagger_loss(model, out, inputs):
    logits, last, cell = out
    tokens, lengths = inputs
    mask = torch.arange(tokens.size(1))[None, :] < lengths[:, None]
    loss = F.cross_entropy(logits.transpose(1, 2), tokens % 5, reduction="none")
    return (loss * mask).sum() / mask.sum() + last.pow(2).mean() + cell.abs().mean()


# --- sequence to sequence ------------------------------------------------------------------------
class Encoder(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)

    def forward(self, input):
        return self.gru(self.embedding(input))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        context = torch.bmm(weights, keys)
        return context, weights


class AttnDecoder(nn.Module):
    SOS = 0

    def __init__(self, hidden_size, output_size, steps):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.steps = steps

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long).fill_(self.SOS)
        decoder_hidden = encoder_hidden
        decoder_outputs: List[torch.Tensor] = []
        attentions = []
        for i in range(self.steps):
            decoder_output, decoder_hidden, attn_weights = self.forward_step(decoder_input, decoder_hidden, encoder_outputs)
            decoder_outputs.append(decoder_output)
            attentions.append(attn_weights)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = decoder_output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        decoder_outputs = torch.cat(decoder_outputs, dim=1)
        decoder_outputs = F.log_softmax(decoder_outputs, dim=-1)
        return decoder_outputs, decoder_hidden, torch.cat(attentions, dim=1)

    def forward_step(self, input, hidden, encoder_outputs):
        embedded = self.embedding(input)
        query = hidden.permute(1, 0, 2)
        context, attn_weights = self.attention(query, encoder_outputs)
        output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
        return self.out(output), hidden, attn_weights


class Seq2Seq(nn.Module):
    def __init__(self, hidden=8, vocab=12, steps=4):
        super().__init__()
        self.encoder, self.decoder = Encoder(vocab, hidden), AttnDecoder(hidden, vocab, steps)

    def forward(self, src, tgt):
        return self.decoder(*self.encoder(src), tgt if self.training else None)


class TeacherForcing(nn.Module):
    """LSTMCell decoder that tosses a coin for each step with Python's random."""

    def __init__(self, vocab=10, hidden=8, ratio=0.5):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.enc, self.dec = nn.LSTMCell(hidden, hidden), nn.LSTMCell(hidden, hidden)
        self.out = nn.Linear(hidden, vocab)
        self.ratio = ratio
        self.coins = random.Random(5)

    def forward(self, src, tgt):
        batch = src.shape[0]
        h = c = torch.zeros(batch, self.enc.hidden_size)
        for t in range(src.shape[1]):
            h, c = self.enc(self.embed(src[:, t]), (h, c))
        outputs = torch.zeros(batch, tgt.shape[1], self.out.out_features)
        token = tgt[:, 0]
        for t in range(1, tgt.shape[1]):
            h, c = self.dec(self.embed(token), (h, c))
            logits = self.out(h)
            outputs[:, t] = logits
            best = logits.argmax(1)
            token = tgt[:, t] if self.coins.random() < self.ratio else best
        return outputs


# --- linear-time sequence models -----------------------------------------------------------------
class MambaBlock(nn.Module):
    def __init__(self, d_model=8, d_state=4, expand=2, d_conv=4, dt_rank="auto"):
        super().__init__()
        self.d_inner = int(expand * d_model)
        self.dt_rank = math.ceil(d_model / 16) if dt_rank == "auto" else dt_rank
        self.d_state = d_state
        self.in_proj = nn.Linear(d_model, self.d_inner * 2, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, kernel_size=d_conv, groups=self.d_inner, padding=d_conv - 1, bias=True)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + d_state * 2, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner, bias=True)
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.A_log._no_weight_decay = True
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def selective_scan(self, u, delta, A, B, C, D):
        b, l, d_in = u.shape
        n = A.shape[1]
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = torch.zeros((b, d_in, n), device=deltaA.device)
        ys = []
        for i in range(l):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            ys.append(torch.einsum("bdn,bn->bd", x, C[:, i, :]))
        y = torch.stack(ys, dim=1)
        return y + u * D

    def forward(self, x):
        (b, l, d) = x.shape
        x_and_res = self.in_proj(x)
        (x, res) = x_and_res.split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = self.conv1d(x.transpose(1, 2))[:, :, :l].transpose(1, 2)
        x = F.silu(x)
        A = -torch.exp(self.A_log.float())
        x_dbl = self.x_proj(x)
        (delta, B, C) = x_dbl.split(split_size=[self.dt_rank, self.d_state, self.d_state], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        y = self.selective_scan(x, delta, A, B, C, self.D.float())
        return self.out_proj(y * F.silu(res))


class Mamba(nn.Module):
    def __init__(self, vocab=16, d=8):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList([nn.Sequential(nn.RMSNorm(d), MambaBlock(d)) for _ in range(2)])
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.embedding.weight

    def forward(self, input_ids):
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer(x) + x
        return self.lm_head(x)


class RWKV(nn.Module):
    """Time mixing with the numerically safe recurrence, channel mixing with squared relu."""

    def __init__(self, d=8, vocab=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))
        ddd = torch.ones(1, 1, d)
        for i in range(d):
            ddd[0, 0, i] = i / d
        self.time_mix_k = nn.Parameter(torch.pow(ddd, 0.7))
        self.time_mix_v = nn.Parameter(torch.pow(ddd, 0.7) + 0.3)
        self.time_mix_r = nn.Parameter(torch.pow(ddd, 0.35))
        self.time_decay = nn.Parameter(torch.linspace(-5, 3, d))
        self.time_first = nn.Parameter(torch.ones(d) * math.log(0.3))
        self.key, self.value, self.receptance, self.output = [nn.Linear(d, d, bias=False) for _ in range(4)]
        self.ck, self.cv, self.cr = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False), nn.Linear(d, d, bias=False)
        self.ln = nn.ModuleList([nn.LayerNorm(d) for _ in range(2)])
        self.head = nn.Linear(d, vocab)

    def time_mix(self, x):
        B, T, C = x.size()
        xx = self.time_shift(x)
        xk = x * self.time_mix_k + xx * (1 - self.time_mix_k)
        xv = x * self.time_mix_v + xx * (1 - self.time_mix_v)
        xr = x * self.time_mix_r + xx * (1 - self.time_mix_r)
        k, v, sr = self.key(xk), self.value(xv), torch.sigmoid(self.receptance(xr))
        w = -torch.exp(self.time_decay)
        aa = bb = torch.zeros(B, C)
        pp = torch.full((B, C), -1e38)
        out = torch.empty_like(v)
        ys = []
        for t in range(T):
            kk, vv = k[:, t], v[:, t]
            ww = self.time_first + kk
            p = torch.maximum(pp, ww)
            e1, e2 = torch.exp(pp - p), torch.exp(ww - p)
            ys.append((e1 * aa + e2 * vv) / (e1 * bb + e2))
            ww = pp + w
            p = torch.maximum(ww, kk)
            e1, e2 = torch.exp(ww - p), torch.exp(kk - p)
            aa, bb, pp = e1 * aa + e2 * vv, e1 * bb + e2, p
        assert out.shape == v.shape
        return self.output(sr * torch.stack(ys, 1))

    def forward(self, ids):
        x = self.emb(ids)
        x = x + self.time_mix(self.ln[0](x))
        h = self.ln[1](x)
        x = x + torch.sigmoid(self.cr(h)) * self.cv(torch.square(torch.relu(self.ck(h))))
        return self.head(x)


# --- sound ---------------------------------------------------------------------------------------
class CausalConv1d(nn.Conv1d):
    def __init__(self, in_channels, out_channels, kernel_size, dilation=1, **kwargs):
        self.__padding = (kernel_size - 1) * dilation
        super().__init__(in_channels, out_channels, kernel_size=kernel_size, padding=self.__padding, dilation=dilation, **kwargs)

    def forward(self, input):
        result = super().forward(input)
        if self.__padding != 0:
            return result[:, :, : -self.__padding]
        return result


class WaveNet(nn.Module):
    def __init__(self, classes=16, residual=6, skip=8, layers=3, blocks=1):
        super().__init__()
        self.start = nn.Conv1d(classes, residual, 1)
        self.filter_convs, self.gate_convs = nn.ModuleList(), nn.ModuleList()
        self.residual_convs, self.skip_convs = nn.ModuleList(), nn.ModuleList()
        for b in range(blocks):
            for i in range(layers):
                d = 2**i
                self.filter_convs.append(CausalConv1d(residual, residual, 2, dilation=d))
                self.gate_convs.append(nn.utils.weight_norm(nn.Conv1d(residual, residual, 2, dilation=d)))
                self.residual_convs.append(nn.Conv1d(residual, residual, 1))
                self.skip_convs.append(nn.Conv1d(residual, skip, 1))
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, classes, 1))

    def forward(self, wave):
        quantized = self.mu_law(wave, 16)
        x = F.one_hot(quantized, 16).float().permute(0, 2, 1)
        x = self.start(x)
        skip = 0
        for f, g, r, s in zip(self.filter_convs, self.gate_convs, self.residual_convs, self.skip_convs):
            residual = x
            gate = g(F.pad(x, (g.dilation[0], 0)))
            x = torch.tanh(f(x)) * torch.sigmoid(gate)
            skip = s(x) + skip
            x = r(x) + residual
        return self.end(skip), quantized

    @staticmethod
    def mu_law(x, quantization_channels):
        mu = quantization_channels - 1.0
        mu = torch.tensor(mu, dtype=x.dtype)
        x_mu = torch.sign(x) * torch.log1p(mu * torch.abs(x)) / torch.log1p(mu)
        return ((x_mu + 1) / 2 * mu + 0.5).to(torch.int64)


class Spectrogram(nn.Module):
    """Mel-like features by a framed DFT with a fixed window."""

    def __init__(self, n_fft=16, hop=8, mels=6):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        n, k = torch.arange(n_fft).float(), torch.arange(n_fft // 2 + 1).float()
        angle = -2 * math.pi * torch.outer(n, k) / n_fft
        self.register_buffer("cos", torch.cos(angle))
        self.register_buffer("sin", torch.sin(angle))
        centres = torch.linspace(0, n_fft // 2, mels + 2)
        bins = torch.arange(n_fft // 2 + 1).float()
        up = (bins[None] - centres[:-2, None]) / (centres[1:-1] - centres[:-2])[:, None]
        down = (centres[2:, None] - bins[None]) / (centres[2:] - centres[1:-1])[:, None]
        self.register_buffer("fb", torch.clamp(torch.min(up, down), min=0.0))

    def forward(self, wave):
        frames = F.pad(wave.unsqueeze(1), (self.n_fft // 2, self.n_fft // 2), mode="reflect").squeeze(1)
        frames = frames.unfold(-1, self.n_fft, self.hop) * self.window
        power = (frames @ self.cos).pow(2) + (frames @ self.sin).pow(2)
        mel = power @ self.fb.T
        log_spec = torch.clamp(mel, min=1e-10).log10()
        log_spec = torch.maximum(log_spec, log_spec.max() - 8.0)
        return (log_spec + 4.0) / 4.0


class Whisper(nn.Module):
    """Convolutions and sinusoids in the encoder, cross attention in the decoder."""

    def __init__(self, mels=6, state=16, heads=2, vocab=20, ctx=8):
        super().__init__()
        self.spec = Spectrogram(mels=mels)
        self.conv1 = nn.Conv1d(mels, state, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(state, state, kernel_size=3, stride=2, padding=1)
        self.register_buffer("positional", self.sinusoids(9, state))
        self.encoder = nn.TransformerEncoderLayer(state, heads, 2 * state, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.ln_post = nn.LayerNorm(state)
        self.token_embedding = nn.Embedding(vocab, state)
        self.positional_embedding = nn.Parameter(torch.empty(ctx, state))
        self.decoder = nn.TransformerDecoderLayer(state, heads, 2 * state, 0.0, "gelu", batch_first=True, norm_first=True)
        self.ln = nn.LayerNorm(state)
        mask = torch.empty(ctx, ctx).fill_(-float("inf")).triu_(1)
        self.register_buffer("mask", mask, persistent=False)

    @staticmethod
    def sinusoids(length, channels, max_timescale=10000):
        assert channels % 2 == 0
        log_timescale_increment = math.log(max_timescale) / (channels // 2 - 1)
        inv_timescales = torch.exp(-log_timescale_increment * torch.arange(channels // 2))
        scaled_time = torch.arange(length)[:, None] * inv_timescales[None, :]
        return torch.cat([torch.sin(scaled_time), torch.cos(scaled_time)], dim=1)

    def forward(self, wave, tokens):
        x = self.spec(wave).transpose(1, 2)
        x = F.gelu(self.conv1(x))
        x = F.gelu(self.conv2(x))
        x = x.permute(0, 2, 1)
        assert x.shape[1:] == self.positional.shape, "incorrect audio shape"
        memory = self.ln_post(self.encoder((x + self.positional).to(x.dtype)))
        y = self.token_embedding(tokens) + self.positional_embedding[: tokens.shape[-1]]
        y = self.decoder(y, memory, tgt_mask=self.mask[: y.size(1), : y.size(1)])
        return (self.ln(y) @ torch.transpose(self.token_embedding.weight.to(y.dtype), 0, 1)).float()


class CTCSpeech(nn.Module):
    """Deep-speech-like: strided convolutions, masks from lengths, batch norm over time, clipped relu, CTC."""

    def __init__(self, mels=6, hidden=8, labels=5):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 2, (3, 5), stride=(2, 2), padding=(1, 2)), nn.BatchNorm2d(2), nn.Hardtanh(0, 20, inplace=True))
        self.rnn = nn.GRU(2 * (mels // 2), hidden, bidirectional=True)
        self.bn = nn.BatchNorm1d(hidden)
        self.fc = nn.Linear(hidden, labels, bias=False)

    def forward(self, x, lengths):
        lengths = torch.div(lengths - 1, 2, rounding_mode="floor") + 1
        x = self.conv(x.unsqueeze(1))
        mask = torch.arange(x.size(-1))[None, :] >= lengths[:, None]
        x = x.masked_fill(mask[:, None, None, :], 0)
        sizes = x.size()
        x = x.view(sizes[0], sizes[1] * sizes[2], sizes[3])
        x = x.permute(2, 0, 1).contiguous()
        x, h = self.rnn(x)
        x = x.view(x.size(0), x.size(1), 2, -1).sum(2).view(x.size(0), x.size(1), -1)
        t, n = x.size(0), x.size(1)
        x = self.fc(self.bn(x.view(t * n, -1))).view(t, n, -1)
        return x.log_softmax(2), lengths


def ctc(model, out, inputs):
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]])
    return nn.CTCLoss(blank=0, zero_infinity=True)(out[0], targets, out[1], torch.tensor([3, 2]))


class Tacotron(nn.Module):
    """Location-sensitive attention in a loop, a prenet, a stop token, a post net."""

    def __init__(self, vocab=12, dim=8, mels=4):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.encoder = nn.Sequential(*[nn.Sequential(nn.Conv1d(dim, dim, 5, padding=2), nn.BatchNorm1d(dim), nn.ReLU()) for _ in range(2)])
        self.prenet = nn.Linear(mels, dim)
        self.attention_rnn = nn.LSTMCell(2 * dim, dim)
        self.query_layer, self.memory_layer = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, 1, bias=False)
        self.location_conv = nn.Conv1d(2, 3, 3, padding=1, bias=False)
        self.location_dense = nn.Linear(3, dim, bias=False)
        self.decoder_rnn = nn.GRUCell(2 * dim, dim)
        self.project, self.gate = nn.Linear(2 * dim, mels), nn.Linear(2 * dim, 1)
        self.postnet = nn.Sequential(nn.Conv1d(mels, mels, 5, padding=2), nn.Tanh())
        self.score_mask_value = -float("inf")

    def forward(self, text, mel, lengths):
        memory = self.encoder(self.embedding(text).transpose(1, 2)).transpose(1, 2)
        processed = self.memory_layer(memory)
        ids = torch.arange(0, torch.max(lengths).item(), out=torch.LongTensor(int(torch.max(lengths))))
        mask = ~(ids < lengths.unsqueeze(1)).bool()
        B, T, D = memory.shape
        h, c, d = (memory.new_zeros(B, D) for _ in range(3))
        weights = cumulative = torch.zeros(B, T)
        context = torch.zeros(B, D)
        frames = torch.cat([mel.new_zeros(B, mel.size(1), 1), mel[:, :, :-1]], 2).permute(2, 0, 1)
        mels, gates, alignments = [], [], []
        while len(mels) < frames.size(0):
            x = F.relu(self.prenet(frames[len(mels)]))
            h, c = self.attention_rnn(torch.cat((x, context), -1), (h, c))
            location = self.location_conv(torch.cat((weights.unsqueeze(1), cumulative.unsqueeze(1)), dim=1))
            location = self.location_dense(location.transpose(1, 2))
            energies = self.v(torch.tanh(self.query_layer(h.unsqueeze(1)) + location + processed)).squeeze(-1)
            energies.data.masked_fill_(mask, self.score_mask_value)
            weights = F.softmax(energies, dim=1)
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            cumulative = cumulative + weights
            d = self.decoder_rnn(torch.cat((h, context), -1), d)
            joined = torch.cat((d, context), dim=1)
            mels += [self.project(joined)]
            gates += [self.gate(joined).squeeze(1)]
            alignments += [weights]
        out = torch.stack(mels).permute(1, 2, 0)
        return out + self.postnet(out), torch.stack(gates).transpose(0, 1), torch.stack(alignments).transpose(0, 1)


class Conformer(nn.Module):
    """Feed-forward, attention with relative shift, and GLU convolution, each half-weighted."""

    def __init__(self, d=8, heads=2, kernel=3):
        super().__init__()
        self.ff1 = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 16), nn.SiLU(), nn.Linear(16, d))
        self.ff2 = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 16), nn.SiLU(), nn.Linear(16, d))
        self.norm_att, self.qkv, self.pos = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d, bias=False)
        self.u, self.v = nn.Parameter(torch.Tensor(heads, d // heads)), nn.Parameter(torch.Tensor(heads, d // heads))
        torch.nn.init.xavier_uniform_(self.u)
        torch.nn.init.xavier_uniform_(self.v)
        self.norm_conv, self.pw1 = nn.LayerNorm(d), nn.Conv1d(d, 2 * d, 1)
        self.dw, self.bn, self.pw2 = nn.Conv1d(d, d, kernel, padding=kernel // 2, groups=d), nn.BatchNorm1d(d), nn.Conv1d(d, d, 1)
        self.final = nn.LayerNorm(d)
        self.heads = heads

    def rel_shift(self, x):
        zero_pad = torch.zeros((*x.size()[:3], 1), device=x.device, dtype=x.dtype)
        x_padded = torch.cat([zero_pad, x], dim=-1)
        x_padded = x_padded.view(*x.size()[:2], x.size(3) + 1, x.size(2))
        return x_padded[:, :, 1:].view_as(x)[:, :, :, : x.size(-1) // 2 + 1]

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).unbind(2)
        position = torch.arange(t - 1, -t, -1.0)[:, None] / torch.pow(10.0, torch.arange(d) / d)
        p = self.pos(position.sin()).view(1, 2 * t - 1, self.heads, -1).transpose(1, 2)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        ac = torch.matmul((q + self.u).transpose(1, 2), k.transpose(-2, -1))
        bd = self.rel_shift(torch.matmul((q + self.v).transpose(1, 2), p.transpose(-2, -1)))
        a = ((ac + bd) / math.sqrt(d // self.heads)).softmax(-1)
        return (a @ v).transpose(1, 2).reshape(b, t, d)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        x = x + self.attend(self.norm_att(x))
        c = F.glu(self.pw1(self.norm_conv(x).transpose(1, 2)), dim=1)
        x = x + self.pw2(F.silu(self.bn(self.dw(c)))).transpose(1, 2)
        return self.final(torch.add(x, self.ff2(x), alpha=0.5))


CASES = {
    "lstm_lm": Case(LSTMLanguageModel, lambda d: (d.integers(20, 6, 3),), nll),
    "gru_lm": Case(lambda: LSTMLanguageModel(rnn_type="GRU"), lambda d: (d.integers(20, 6, 3),), nll),
    "rnn_lm": Case(lambda: LSTMLanguageModel(rnn_type="RNN_RELU"), lambda d: (d.integers(20, 6, 3),), nll),
    "lstm_lm_dropout": Case(lambda: LSTMLanguageModel(dropout=0.3), lambda d: (d.integers(20, 6, 3),), nll, draws=True),
    "packed_tagger": Case(PackedTagger, tagger_inputs, tagger_loss, breaks=49),
    "seq2seq_attention": Case(Seq2Seq, lambda d: (d.integers(12, 2, 5), d.integers(12, 2, 4))),
    "teacher_forcing": Case(TeacherForcing, lambda d: (d.integers(10, 3, 4), d.integers(10, 3, 5)), breaks=16),
    "mamba": Case(Mamba, lambda d: (d.integers(16, 2, 6),)),
    "rwkv": Case(RWKV, lambda d: (d.integers(16, 2, 5),)),
    "wavenet": Case(WaveNet, lambda d: (d.uniform(2, 12, low=-1.0),), lambda m, out, i: F.cross_entropy(out[0][:, :, :-1], out[1][:, 1:])),
    "whisper": Case(Whisper, lambda d: (d.normal(2, 136), d.integers(20, 2, 6))),
    "ctc_speech": Case(CTCSpeech, lambda d: (d.normal(2, 6, 20), torch.tensor([20, 14])), ctc),
    "tacotron": Case(Tacotron, lambda d: (d.integers(12, 2, 6), d.normal(2, 4, 5), torch.tensor([6, 4])), breaks=4),
    "conformer": Case(Conformer, lambda d: (d.normal(2, 6, 8),)),
}
