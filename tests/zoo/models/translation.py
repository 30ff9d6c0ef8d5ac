"""Encoders and decoders, and mixtures of experts."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.zoo.case import Case
from tests.zoo.models.language import SwiGLU


# --- encoder-decoder -----------------------------------------------------------------------------
class T5Attention(nn.Module):
    def __init__(self, d=16, heads=2, has_relative_attention_bias=False, is_decoder=False, buckets=8, max_distance=16):
        super().__init__()
        self.is_decoder, self.n_heads, self.d_kv = is_decoder, heads, d // heads
        self.buckets, self.max_distance = buckets, max_distance
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.has_relative_attention_bias = has_relative_attention_bias
        if has_relative_attention_bias:
            self.relative_attention_bias = nn.Embedding(buckets, heads)

    @staticmethod
    def _relative_position_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
        relative_buckets = 0
        if bidirectional:
            num_buckets //= 2
            relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
            relative_position = torch.abs(relative_position)
        else:
            relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        if_large = max_exact + (
            torch.log(relative_position.float() / max_exact) / math.log(max_distance / max_exact) * (num_buckets - max_exact)
        ).to(torch.long)
        if_large = torch.min(if_large, torch.full_like(if_large, num_buckets - 1))
        relative_buckets += torch.where(is_small, relative_position, if_large)
        return relative_buckets

    def compute_bias(self, query_length, key_length, device=None):
        context_position = torch.arange(query_length, dtype=torch.long, device=device)[:, None]
        memory_position = torch.arange(key_length, dtype=torch.long, device=device)[None, :]
        bucket = self._relative_position_bucket(memory_position - context_position, bidirectional=(not self.is_decoder),
                                                num_buckets=self.buckets, max_distance=self.max_distance)
        return self.relative_attention_bias(bucket).permute([2, 0, 1]).unsqueeze(0)

    def forward(self, x, key_value_states=None, position_bias=None, mask=None):
        b, t = x.shape[:2]
        src = x if key_value_states is None else key_value_states

        def shape(states):
            return states.view(b, -1, self.n_heads, self.d_kv).transpose(1, 2)

        q, k, v = shape(self.q(x)), shape(self.k(src)), shape(self.v(src))
        scores = torch.matmul(q, k.transpose(3, 2))
        if position_bias is None:
            if not self.has_relative_attention_bias:
                position_bias = torch.zeros((1, self.n_heads, t, src.shape[1]), device=scores.device, dtype=scores.dtype)
            else:
                position_bias = self.compute_bias(t, src.shape[1], device=scores.device)
            if mask is not None:
                position_bias = position_bias + mask
        scores += position_bias
        weights = nn.functional.softmax(scores.float(), dim=-1).type_as(scores)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous().view(b, -1, self.n_heads * self.d_kv)
        return self.o(out), position_bias


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states


class T5Stack(nn.Module):
    def __init__(self, embed, d, decoder):
        super().__init__()
        self.embed_tokens = embed
        self.is_decoder = decoder
        self.attn = nn.ModuleList([T5Attention(d, has_relative_attention_bias=i == 0, is_decoder=decoder) for i in range(2)])
        self.cross = nn.ModuleList([T5Attention(d, is_decoder=decoder) for i in range(2)]) if decoder else [None, None]
        self.wi_0 = nn.ModuleList([nn.Linear(d, 2 * d, bias=False) for _ in range(2)])
        self.wi_1 = nn.ModuleList([nn.Linear(d, 2 * d, bias=False) for _ in range(2)])
        self.wo = nn.ModuleList([nn.Linear(2 * d, d, bias=False) for _ in range(2)])
        self.norms = nn.ModuleList([T5LayerNorm(d) for _ in range(6)])
        self.final = T5LayerNorm(d)

    def forward(self, ids, memory=None):
        x = self.embed_tokens(ids)
        mask = None
        if self.is_decoder:
            t = ids.shape[1]
            seq_ids = torch.arange(t, device=ids.device)
            causal = seq_ids[None, None, :].repeat(ids.shape[0], t, 1) <= seq_ids[None, :, None]
            mask = (1.0 - causal[:, None].to(x.dtype)) * -1e9
        bias = cross_bias = None
        for i in range(2):
            a, bias = self.attn[i](self.norms[3 * i](x), position_bias=bias, mask=mask)
            x = x + a
            if self.cross[i] is not None:
                a, cross_bias = self.cross[i](self.norms[3 * i + 1](x), memory, cross_bias)
                x = x + a
            h = self.norms[3 * i + 2](x)
            x = x + self.wo[i](F.gelu(self.wi_0[i](h), approximate="tanh") * self.wi_1[i](h))
        return self.final(x)


class T5(nn.Module):
    def __init__(self, vocab=24, d=16):
        super().__init__()
        self.shared = nn.Embedding(vocab, d)
        self.encoder = T5Stack(self.shared, d, False)
        self.decoder = T5Stack(self.shared, d, True)
        self.d = d

    def _shift_right(self, labels):
        shifted = labels.new_zeros(labels.shape)
        shifted[..., 1:] = labels[..., :-1].clone()
        shifted[..., 0] = 0
        shifted.masked_fill_(shifted == -100, 0)
        return shifted

    def forward(self, ids, labels):
        memory = self.encoder(ids)
        x = self.decoder(self._shift_right(labels), memory) * (self.d**-0.5)
        logits = x @ self.shared.weight.t()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100), logits


def t5_inputs(d):
    labels = d.integers(24, 2, 7)
    labels[0, 5:] = -100
    return d.integers(24, 2, 9), labels


class NNTransformer(nn.Module):
    """The tutorial's translation model: nn.Transformer with masks made from lengths."""

    def __init__(self, vocab=20, d=16, dropout=0.0):
        super().__init__()
        self.transformer = nn.Transformer(d_model=d, nhead=2, num_encoder_layers=1, num_decoder_layers=2,
                                          dim_feedforward=32, dropout=dropout, batch_first=True)
        self.generator = nn.Linear(d, vocab)
        self.src_tok_emb = nn.Embedding(vocab, d)
        self.tgt_tok_emb = nn.Embedding(vocab, d)
        self.d = d
        den = torch.exp(-torch.arange(0, d, 2) * math.log(10000) / d)
        pos = torch.arange(0, 50).reshape(50, 1)
        pos_embedding = torch.zeros((50, d))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        self.register_buffer("pos_embedding", pos_embedding)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def embed(self, table, tokens):
        return table(tokens.long()) * math.sqrt(self.d) + self.pos_embedding[:tokens.size(1)]

    def forward(self, src, tgt):
        tgt_in = tgt[:, :-1]
        causal = self.transformer.generate_square_subsequent_mask(tgt_in.size(1))
        src_pad, tgt_pad = src == 1, tgt_in == 1
        out = self.transformer(self.embed(self.src_tok_emb, src), self.embed(self.tgt_tok_emb, tgt_in), tgt_mask=causal,
                               src_key_padding_mask=src_pad, tgt_key_padding_mask=torch.zeros_like(tgt_pad, dtype=torch.float32).masked_fill(tgt_pad, float("-inf")),
                               memory_key_padding_mask=src_pad)
        return self.generator(out)


def translation_inputs(d):
    src, tgt = d.integers(20, 2, 7, low=2), d.integers(20, 2, 6, low=2)
    src[1, 5:] = 1
    tgt[0, 4:] = 1
    return src, tgt


def translation_loss(model, logits, inputs):
    loss_fn = torch.nn.CrossEntropyLoss(ignore_index=1)
    tgt_out = inputs[1][:, 1:]
    return loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))


# --- mixture of experts --------------------------------------------------------------------------
class MoE(nn.Module):
    """Every expert runs on the tokens routed to it, added back with index_add_ (as Mixtral does)."""

    def __init__(self, dim=12, experts=4, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = experts, top_k
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList([SwiGLU(dim, 24) for _ in range(experts)])

    def forward(self, hidden_states):
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states = hidden_states.view(-1, hidden_dim)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights /= routing_weights.sum(dim=-1, keepdim=True)
        routing_weights = routing_weights.to(hidden_states.dtype)
        final = torch.zeros((batch_size * sequence_length, hidden_dim), dtype=hidden_states.dtype, device=hidden_states.device)
        expert_mask = torch.nn.functional.one_hot(selected, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            expert_layer = self.experts[expert_idx]
            idx, top_x = torch.where(expert_mask[expert_idx])
            current_state = hidden_states[None, top_x].reshape(-1, hidden_dim)
            current = expert_layer(current_state) * routing_weights[top_x, idx, None]
            final.index_add_(0, top_x, current.to(hidden_states.dtype))
        return final.reshape(batch_size, sequence_length, hidden_dim), router_logits


class SwitchMoE(nn.Module):
    """Capacity-limited dispatch with static shapes: one-hot, cumsum positions, einsum in and out, balance loss."""

    def __init__(self, dim=8, experts=3, capacity=4):
        super().__init__()
        self.wg = nn.Linear(dim, experts)
        self.w_in = nn.Parameter(torch.randn(experts, dim, 16))
        self.w_out = nn.Parameter(torch.randn(experts, 16, dim))
        self.capacity, self.experts = capacity, experts

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        gates = F.softmax(self.wg(x), dim=-1)
        index = gates.argmax(dim=-1)
        mask = F.one_hot(index, num_classes=self.experts)
        locations = torch.cumsum(mask, dim=0) - 1
        aux = torch.mean(gates.mean(dim=0) * mask.float().mean(dim=0)) * self.experts * self.experts
        mask = mask * torch.lt(locations, self.capacity)
        locations_s = torch.sum(locations * mask, dim=1)
        gates = gates * mask.float()
        loc = F.one_hot(locations_s, num_classes=self.capacity).float()
        combine = torch.einsum("se,sc->sec", gates, loc)
        dispatch = combine.bool().to(x.dtype)
        expert_in = torch.einsum("sec,sm->ecm", dispatch, x)
        h = torch.relu(torch.bmm(expert_in, self.w_in))
        out = torch.baddbmm(torch.zeros(1), h, self.w_out)
        y = torch.einsum("sec,ecm->sm", combine, out)
        return y.view(shape), aux


CASES = {
    "t5": Case(T5, t5_inputs, lambda m, out, i: out[0]),
    "nn_transformer": Case(NNTransformer, translation_inputs, translation_loss),
    "nn_transformer_dropout": Case(lambda: NNTransformer(dropout=0.1), translation_inputs, translation_loss, draws=True),
    "mixtral": Case(MoE, lambda d: (d.normal(2, 5, 12),), breaks=16),
    "switch_moe": Case(SwitchMoE, lambda d: (d.normal(2, 5, 8),)),
}
