"""Transformers over text."""
import copy
import math
from dataclasses import dataclass
from typing import NamedTuple, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.zoo.case import Case


# --- bidirectional -------------------------------------------------------------------------------
class BertConfig:
    def __init__(self, vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                 hidden_act="gelu", dropout=0.0, max_position_embeddings=16, type_vocab_size=2, layer_norm_eps=1e-12, **kwargs):
        self.__dict__.update({k: v for k, v in locals().items() if k not in ("self", "kwargs", "__class__")})
        for key, value in kwargs.items():
            setattr(self, key, value)


ACT2FN = {"gelu": F.gelu, "relu": F.relu, "swish": lambda x: x * torch.sigmoid(x)}


class BertEmbeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("position_ids", torch.arange(config.max_position_embeddings).expand((1, -1)), persistent=False)

    def forward(self, input_ids, token_type_ids=None):
        seq_length = input_ids.size(1)
        position_ids = self.position_ids[:, :seq_length]
        if token_type_ids is None:
            token_type_ids = torch.zeros(input_ids.size(), dtype=torch.long, device=input_ids.device)
        x = self.word_embeddings(input_ids) + self.position_embeddings(position_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.LayerNorm(x))


class BertSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        if config.hidden_size % config.num_attention_heads != 0:
            raise ValueError(
                "The hidden size (%d) is not a multiple of the number of attention heads (%d)"
                % (config.hidden_size, config.num_attention_heads))
        self.num_attention_heads = config.num_attention_heads
        self.attention_head_size = int(config.hidden_size / config.num_attention_heads)
        self.all_head_size = self.num_attention_heads * self.attention_head_size
        self.query = nn.Linear(config.hidden_size, self.all_head_size)
        self.key = nn.Linear(config.hidden_size, self.all_head_size)
        self.value = nn.Linear(config.hidden_size, self.all_head_size)
        self.dropout = nn.Dropout(config.dropout)

    def transpose_for_scores(self, x):
        new_x_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
        x = x.view(*new_x_shape)
        return x.permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        query_layer = self.transpose_for_scores(self.query(hidden_states))
        key_layer = self.transpose_for_scores(self.key(hidden_states))
        value_layer = self.transpose_for_scores(self.value(hidden_states))
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)
        attention_scores = attention_scores + attention_mask
        attention_probs = self.dropout(nn.Softmax(dim=-1)(attention_scores))
        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        new_context_layer_shape = context_layer.size()[:-2] + (self.all_head_size,)
        return context_layer.view(*new_context_layer_shape), attention_probs


class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.hidden_size),
                                     "norm": nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)})
        self.intermediate = nn.Linear(config.hidden_size, config.intermediate_size)
        self.act = ACT2FN[config.hidden_act] if isinstance(config.hidden_act, str) else config.hidden_act
        self.out = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x, mask):
        a, probs = self.self(x, mask)
        x = self.output["norm"](self.output["dense"](a) + x)
        return self.norm(self.out(self.act(self.intermediate(x))) + x), probs


@dataclass
class MaskedLMOutput:
    loss: Optional[torch.Tensor] = None
    logits: torch.Tensor = None
    hidden_states: Optional[Tuple[torch.Tensor]] = None
    attentions: Optional[Tuple[torch.Tensor]] = None


class BertForMaskedLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        layer = BertLayer(config)
        self.layer = nn.ModuleList([copy.deepcopy(layer) for _ in range(config.num_hidden_layers)])
        self.transform = nn.Sequential(nn.Linear(config.hidden_size, config.hidden_size), nn.GELU(), nn.LayerNorm(config.hidden_size))
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.decoder.weight = self.embeddings.word_embeddings.weight
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)
        self.apply(self.init_weights)

    def init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=0.02)
        elif isinstance(module, nn.LayerNorm):
            module.bias.data.zero_()
            module.weight.data.fill_(1.0)
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias.data.zero_()

    def get_extended_attention_mask(self, attention_mask, dtype):
        if attention_mask.dim() == 3:
            extended = attention_mask[:, None, :, :]
        elif attention_mask.dim() == 2:
            extended = attention_mask[:, None, None, :]
        else:
            raise ValueError(f"Wrong shape for attention_mask (shape {attention_mask.shape})")
        extended = extended.to(dtype=dtype)
        return (1.0 - extended) * torch.finfo(dtype).min

    def forward(self, input_ids, attention_mask=None, labels=None, output_hidden_states=True, output_attentions=True):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        x = self.embeddings(input_ids)
        mask = self.get_extended_attention_mask(attention_mask, x.dtype)
        all_hidden_states = () if output_hidden_states else None
        all_attentions = () if output_attentions else None
        for i, layer_module in enumerate(self.layer):
            if output_hidden_states:
                all_hidden_states = all_hidden_states + (x,)
            x, probs = layer_module(x, mask)
            if output_attentions:
                all_attentions = all_attentions + (probs,)
        pooled = torch.tanh(self.pooler(x[:, 0]))
        logits = self.decoder(self.transform(x)) + self.bias + pooled.sum(-1)[:, None, None]
        loss = None
        if labels is not None:
            loss_fct = nn.CrossEntropyLoss()
            loss = loss_fct(logits.view(-1, self.config.vocab_size), labels.view(-1))
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=all_hidden_states, attentions=all_attentions)


def bert_inputs(d):
    ids = d.integers(40, 2, 8, low=1)
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[1, 5:] = 0
    ids[1, 5:] = 0
    labels = torch.where(d.mask(2, 8, keep=0.4), ids, torch.full_like(ids, -100))
    return ids, mask, labels


# --- autoregressive ------------------------------------------------------------------------------
@dataclass
class GPTConfig:
    block_size: int = 12
    vocab_size: int = 32
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.0
    bias: bool = True


class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head, self.n_embd = config.n_head, config.n_embd
        self.register_buffer("bias", torch.tril(torch.ones(config.block_size, config.block_size))
                             .view(1, 1, config.block_size, config.block_size))

    def forward(self, x, layer_past=None, use_cache=False):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        if layer_past is not None:
            past_key, past_value = layer_past
            k = torch.cat((past_key, k), dim=-2)
            v = torch.cat((past_value, v), dim=-2)
        present = (k, v) if use_cache else None
        S = k.size(-2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, S - T:S, :S] == 0, float("-inf"))
        att = self.attn_dropout(F.softmax(att, dim=-1))
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y)), present


class GPTBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.ModuleDict(dict(
            c_fc=nn.Linear(config.n_embd, 4 * config.n_embd), c_proj=nn.Linear(4 * config.n_embd, config.n_embd),
            act=NewGELU(), dropout=nn.Dropout(config.dropout)))
        m = self.mlp
        self.mlpf = lambda x: m.dropout(m.c_proj(m.act(m.c_fc(x))))

    def forward(self, x, past=None, use_cache=False):
        a, present = self.attn(self.ln_1(x), past, use_cache)
        x = x + a
        return x + self.mlpf(self.ln_2(x)), present


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(config.vocab_size, config.n_embd),
            wpe=nn.Embedding(config.block_size, config.n_embd),
            drop=nn.Dropout(config.dropout),
            h=nn.ModuleList([GPTBlock(config) for _ in range(config.n_layer)]),
            ln_f=nn.LayerNorm(config.n_embd),
        ))
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        for pn, p in self.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.n_layer))
        self.n_params = sum(p.numel() for p in self.parameters()) - self.transformer.wpe.weight.numel()

    def forward(self, idx, targets=None, past_key_values=None, use_cache=False):
        device = idx.device
        b, t = idx.size()
        past_length = 0 if past_key_values is None else past_key_values[0][0].size(-2)
        assert past_length + t <= self.config.block_size, f"Cannot forward sequence of length {t}, block size is only {self.config.block_size}"
        pos = torch.arange(past_length, past_length + t, dtype=torch.long, device=device).unsqueeze(0)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        presents = [] if use_cache else None
        for block, past in zip(self.transformer.h, past_key_values or [None] * len(self.transformer.h)):
            x, present = block(x, past, use_cache)
            if use_cache:
                presents.append(present)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits = self.lm_head(x[:, [-1], :])
            loss = None
        return (logits, loss) if not use_cache else (logits, loss, presents)


class GPTGenerate(GPT):
    """Greedy decoding with a key-value cache, then the logits of the whole."""

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None):
        past = None
        cur = idx
        for _ in range(max_new_tokens):
            logits, _, past = self(cur, past_key_values=past, use_cache=True)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            _, cur = torch.topk(probs, k=1, dim=-1)
            idx = torch.cat((idx, cur), dim=1)
        return idx


class Generating(nn.Module):
    def __init__(self):
        super().__init__()
        self.gpt = GPTGenerate(GPTConfig())

    def forward(self, idx):
        out = self.gpt.generate(idx, 5, temperature=0.8, top_k=5)
        logits, loss = self.gpt(out[:, :-1], out[:, 1:].contiguous())
        return out, logits, loss


# --- Llama ---------------------------------------------------------------------------------------
class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device, dtype=torch.float32)
    freqs = torch.outer(t, freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def reshape_for_broadcast(freqs_cis: torch.Tensor, x: torch.Tensor):
    ndim = x.ndim
    assert 0 <= 1 < ndim
    assert freqs_cis.shape == (x.shape[1], x.shape[-1])
    shape = [d if i == 1 or i == ndim - 1 else 1 for i, d in enumerate(x.shape)]
    return freqs_cis.view(*shape)


def apply_rotary_emb(xq, xk, freqs_cis):
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = reshape_for_broadcast(freqs_cis, xq_)
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)


def repeat_kv(x: torch.Tensor, n_rep: int) -> torch.Tensor:
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_rep == 1:
        return x
    return x[:, :, :, None, :].expand(bs, slen, n_kv_heads, n_rep, head_dim).reshape(bs, slen, n_kv_heads * n_rep, head_dim)


class LlamaAttention(nn.Module):
    def __init__(self, dim=16, n_heads=4, n_kv_heads=2, max_seq=16):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.n_rep = n_heads // n_kv_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x, start_pos, freqs_cis, mask):
        bsz, seqlen, _ = x.shape
        xq, xk, xv = self.wq(x), self.wk(x), self.wv(x)
        xq = xq.view(bsz, seqlen, self.n_heads, self.head_dim)
        xk = xk.view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xv = xv.view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xq, xk = apply_rotary_emb(xq, xk, freqs_cis=freqs_cis)
        keys, values = repeat_kv(xk, self.n_rep), repeat_kv(xv, self.n_rep)
        xq, keys, values = xq.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)
        scores = torch.matmul(xq, keys.transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(xq)
        output = torch.matmul(scores, values)
        output = output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.wo(output)


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden, multiple_of=8):
        super().__init__()
        hidden = int(2 * hidden / 3)
        hidden = multiple_of * ((hidden + multiple_of - 1) // multiple_of)
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Llama(nn.Module):
    def __init__(self, vocab=32, dim=16, layers=2, max_seq=16):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab, dim)
        self.layers = torch.nn.ModuleList()
        for layer_id in range(layers):
            self.layers.append(nn.ModuleDict({
                "attention": LlamaAttention(dim), "feed_forward": SwiGLU(dim, 4 * dim),
                "attention_norm": RMSNorm(dim), "ffn_norm": RMSNorm(dim)}))
        self.norm = RMSNorm(dim, eps=1e-5)
        self.output = nn.Linear(dim, vocab, bias=False)
        self.freqs_cis = precompute_freqs_cis(dim // 4, max_seq * 2)

    def forward(self, tokens: torch.Tensor, start_pos: int = 0):
        _bsz, seqlen = tokens.shape
        h = self.tok_embeddings(tokens)
        self.freqs_cis = self.freqs_cis.to(h.device)
        freqs_cis = self.freqs_cis[start_pos:start_pos + seqlen]
        mask = None
        if seqlen > 1:
            mask = torch.full((seqlen, seqlen), float("-inf"), device=tokens.device)
            mask = torch.triu(mask, diagonal=1)
            mask = torch.hstack([torch.zeros((seqlen, start_pos), device=tokens.device), mask]).type_as(h)
        for layer in self.layers:
            h = h + layer["attention"](layer["attention_norm"](h), start_pos, freqs_cis, mask)
            h = h + layer["feed_forward"](layer["ffn_norm"](h))
        return self.output(self.norm(h)).float()


def next_token_loss(model, out, inputs):
    logits = out[:, :-1].contiguous()
    labels = inputs[0][..., 1:].contiguous()
    return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2:]
    return torch.cat((-x2, x1), dim=-1)


class RotaryEmbedding(nn.Module):
    inv_freq: torch.Tensor

    def __init__(self, dim, max_position_embeddings=32, base=10000, device=None):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float().to(device) / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        inv_freq_expanded = self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1)
        position_ids_expanded = position_ids[:, None, :].float()
        device_type = x.device.type if isinstance(x.device.type, str) and x.device.type != "mps" else "cpu"
        assert device_type in ("cpu", "cuda")
        freqs = (inv_freq_expanded @ position_ids_expanded).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(dtype=x.dtype), emb.sin().to(dtype=x.dtype)


class CacheOutput(NamedTuple):
    logits: torch.Tensor
    past: Tuple


class Mistral(nn.Module):
    """Rotary by halves, grouped queries through scaled_dot_product_attention, a sliding window, a cache as tuples."""

    def __init__(self, vocab=32, dim=16, heads=4, kv_heads=1, window=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, 0)
        self.heads, self.kv_heads, self.hd, self.window = heads, kv_heads, dim // heads, window
        self.rotary = RotaryEmbedding(dim // heads)
        self.q = nn.ModuleList([nn.Linear(dim, dim, bias=False) for _ in range(layers)])
        self.kv = nn.ModuleList([nn.Linear(dim, 2 * kv_heads * self.hd, bias=False) for _ in range(layers)])
        self.o = nn.ModuleList([nn.Linear(dim, dim, bias=False) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.RMSNorm(dim, eps=1e-6) for _ in range(2 * layers)])
        self.gate_up = nn.ModuleList([nn.Linear(dim, 4 * dim, bias=False) for _ in range(layers)])
        self.down = nn.ModuleList([nn.Linear(2 * dim, dim, bias=False) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, past=None):
        b, t = ids.shape
        offset = past[0][0].shape[-2] if past is not None else 0
        x = self.embed(ids)
        cos, sin = self.rotary(x, torch.arange(offset, offset + t, device=ids.device).unsqueeze(0))
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        i = torch.arange(offset, offset + t)[:, None]
        j = torch.arange(offset + t)[None, :]
        mask = (j <= i) & (i - j < self.window)
        cache = []
        for n, (q, kv, o, gu, down) in enumerate(zip(self.q, self.kv, self.o, self.gate_up, self.down)):
            h = self.norms[2 * n](x)
            query = q(h).view(b, t, -1, self.hd).transpose(1, 2)
            key, value = kv(h).view(b, t, 2, self.kv_heads, self.hd).permute(2, 0, 3, 1, 4)
            query, key = (y * cos + rotate_half(y) * sin for y in (query, key))
            if past is not None:
                key, value = torch.cat([past[n][0], key], 2), torch.cat([past[n][1], value], 2)
            cache.append((key, value))
            rep = self.heads // self.kv_heads
            a = F.scaled_dot_product_attention(query, key.repeat_interleave(rep, dim=1), value.repeat_interleave(rep, dim=1), attn_mask=mask)
            x = x + o(a.transpose(1, 2).reshape(b, t, -1))
            gate, up = gu(self.norms[2 * n + 1](x)).chunk(2, -1)
            x = x + down(F.silu(gate) * up)
        return CacheOutput(self.head(x), tuple(cache))


class MistralTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.lm = Mistral()

    def forward(self, ids):
        first = self.lm(ids[:, :5])
        second = self.lm(ids[:, 5:], past=first.past)
        return torch.cat([first.logits, second.logits], dim=1)


CASES = {
    "bert": Case(lambda: BertForMaskedLM(BertConfig()), bert_inputs, lambda m, out, i: out.loss),
    "gpt2": Case(lambda: GPT(GPTConfig()), lambda d: (d.integers(32, 2, 10), d.integers(32, 2, 10)), lambda m, out, i: out[1], compiled=True),
    "gpt2_dropout": Case(lambda: GPT(GPTConfig(dropout=0.1)), lambda d: (d.integers(32, 2, 10), d.integers(32, 2, 10)),
                         lambda m, out, i: out[1], draws=True),
    "gpt2_generate": Case(Generating, lambda d: (d.integers(32, 2, 4),), lambda m, out, i: out[2]),
    "llama_complex": Case(Llama, lambda d: (d.integers(32, 2, 8),), next_token_loss, compiled=True),
    "mistral": Case(MistralTwice, lambda d: (d.integers(32, 2, 9),), next_token_loss),
}
