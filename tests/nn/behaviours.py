"""Behaviour of modules and their helpers, line by line: torch and eager run each line, and the outcomes are compared.

A group is a list of lines that share their variables. The outcome of an expression is its value or its error, and its
warnings. A line that begins with "!" runs without a comparison.
"""
from __future__ import annotations

import collections
import copy
import importlib
import io
import pickle
import warnings
from typing import Any

import numpy as np

NET = '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.b = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        self.register_buffer("buf", torch.ones(2))
        self.register_buffer("tmp", torch.zeros(1), persistent=False)
        self.tied = self.a
        self.p = nn.Parameter(torch.ones(2))
        self.none = None
        self.register_parameter("np", None)
        self.register_buffer("nb", None)
    def forward(self, x, scale=1):
        return self.b(self.a(x)) * scale + self.buf * self.p

class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
        self.sub = nn.Linear(1, 1)
    def get_extra_state(self):
        return {"v": 1}
    def set_extra_state(self, state):
        log.append(("extra", state))

class Early(nn.Module):
    def __init__(self, what):
        if what == "module": self.l = nn.Linear(1, 1)
        if what == "parameter": self.l = nn.Parameter(torch.ones(1))
        if what == "buffer": self.register_buffer("x", torch.ones(1))

def fill(m):
    for i, p in enumerate(m.parameters()):
        with torch.no_grad():
            p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape) + i * 0.1)
    return m
'''

GROUPS: dict[str, list[str]] = {
    "names": [
        "!m = fill(Net())",
        *(f"[n for n, _ in m.{f}({args})]" for f in ("named_parameters", "named_buffers", "named_modules")
          for args in ("", "remove_duplicate=False", "prefix='x'")),
        "[n for n, _ in m.named_parameters(recurse=False)]", "[n for n, _ in m.named_children()]", "list(m.state_dict())",
        "list(m.state_dict(prefix='q.'))", "m.state_dict()._metadata", "m.get_submodule('b.0')", "m.get_submodule('')",
        "m.get_submodule('b.9')", "m.get_submodule('p')", "m.get_parameter('a.weight').shape", "m.get_parameter('a.foo')",
        "m.get_parameter('buf')", "m.get_buffer('b.1.running_mean')", "m.get_buffer('p')", "m.get_buffer('nope')",
        "m.set_submodule('b.0', nn.Linear(3, 2, bias=False))", "m.b", "m.set_submodule('', nn.ReLU())", "m.set_submodule('z.y', nn.ReLU())",
        "m.set_submodule('b.5', nn.ReLU(), strict=True)", "m.set_submodule('b.0', 3)", "m.get_extra_state()", "m.set_extra_state(1)",
        "m", "repr(nn.Module())", "m.extra_repr()",
    ],
    "registering": [
        "!m = fill(Net())",
        "m.register_buffer('a', torch.ones(1))", "m.register_buffer('x.y', torch.ones(1))", "m.register_buffer('', torch.ones(1))",
        "m.register_buffer(1, torch.ones(1))", "m.register_buffer('q', 3)", "m.register_parameter('q', torch.ones(1))",
        "m.register_parameter('buf', nn.Parameter(torch.ones(1)))", "m.register_parameter('q', nn.Parameter(torch.ones(1)) * 1)",
        "m.register_module('w', 3)", "m.add_module('a.b', nn.ReLU())", "m.add_module('buf', nn.ReLU())",
        "m.add_module('forward', nn.ReLU())",
        "setattr(m, 'p', torch.ones(1))", "setattr(m, 'a', 3)", "setattr(m, 'buf', 3)", "setattr(m, 'p', None)", "m.zzz",
        "delattr(m, 'zzz')", "delattr(m, 'p')", "m.p", "Early('module')", "Early('parameter')", "Early('buffer')", "nn.Module().forward(1)",
        "nn.Module()(1)", "nn.Module(3)", "nn.Module(x=3)", "setattr(m, 'fresh', nn.Buffer(torch.ones(2), persistent=False))",
        "list(m.state_dict())", "setattr(m, 'fresh', torch.zeros(2))", "[n for n, _ in m.named_buffers()]",
    ],
    "loading": [
        "!m = fill(Net()); sd = m.state_dict()",
        "m.load_state_dict({})", "m.load_state_dict({}, False)", "m.load_state_dict(3)", "m.load_state_dict([('a', 1)])",
        "!bad = collections.OrderedDict(sd); bad['a.weight'] = torch.ones(3, 3); bad['extra'] = torch.ones(1); del bad['p']",
        "m.load_state_dict(bad)", "m.load_state_dict(bad, strict=False)", "!bad['a.weight'] = torch.ones(3, 2)",
        "m.load_state_dict(bad, strict=False)", "!bad['a.weight'] = 3", "m.load_state_dict(bad)",
        "!bad = collections.OrderedDict(sd); bad['b.1.running_mean'] = torch.ones(3)", "m.load_state_dict(bad)",
        "m.load_state_dict({k: v.double() for k, v in sd.items()})", "m.a.weight.dtype",
        "m.load_state_dict({k: v.double() for k, v in sd.items()}, assign=True)",
        "(m.a.weight.dtype, m.a.weight.requires_grad, type(m.a.weight).__name__, m.tied.weight is m.a.weight, m.buf.dtype)",
        "!m = fill(Net()); w = nn.Parameter(torch.ones(3, 2), requires_grad=False)",
        "m.load_state_dict({**sd, 'a.weight': w}, assign=True)", "(m.a.weight is w, m.a.weight.requires_grad)",
        "nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2, bias=False).state_dict())",
        "nn.Linear(2, 2, bias=False).load_state_dict(nn.Linear(2, 2).state_dict())",
        "nn.Sequential(nn.Linear(1, 1)).load_state_dict({'0.weight': torch.ones(1, 1, 1), '0.bias': torch.tensor(1.)})",
        "nn.BatchNorm1d(2).load_state_dict({k: v for k, v in nn.BatchNorm1d(2).state_dict().items() if 'num' not in k})",
        "nn.Linear(2, 2, device='meta').load_state_dict(nn.Linear(2, 2).state_dict())", "!mm = nn.Linear(2, 2, device='meta')",
        "mm.load_state_dict(nn.Linear(2, 2).state_dict(), assign=True)", "str(mm.weight.device)",
        "repr(nn.Linear(1, 1).load_state_dict(nn.Linear(1, 1).state_dict()))", "repr(m.load_state_dict({}, strict=False))",
        "nn.utils.skip_init(nn.Linear, 2, 3).weight.shape", "nn.utils.skip_init(nn.ReLU)", "nn.utils.skip_init(3)",
    ],
    "state hooks": [
        "!log = []; m = Stateful()",
        "!m.register_state_dict_pre_hook(lambda mod, p, k: log.append(('pre', p, k)))",
        "!m.register_state_dict_post_hook(lambda mod, sd, p, md: log.append(('post', list(sd), p, dict(md))))",
        "!m._register_state_dict_hook(lambda mod, sd, p, md: sd)",
        "!m.register_load_state_dict_pre_hook(lambda mod, sd, p, md, st, mk, uk, em: log.append(('load', list(sd), p, st)))",
        "!def clear(mod, ik): log.append(('loaded', list(ik.missing_keys))); ik.missing_keys.clear()",
        "!m.register_load_state_dict_post_hook(clear)",
        "!sd = m.state_dict()", "list(sd)", "log", "m.load_state_dict(sd)", "!del sd['w']", "m.load_state_dict(sd)",
        "!del sd['_extra_state']", "m.load_state_dict(sd)", "log", "!m = nn.Linear(1, 1)",
        "!m.register_state_dict_post_hook(lambda mod, sd, p, md: 3)", "m.state_dict()", "!m = nn.Linear(1, 1)",
        "list(m.state_dict({}, 'a.'))",
        "!m.register_load_state_dict_post_hook(lambda mod, ik: 3)", "m.load_state_dict(m.state_dict())",
    ],
    "hooks": [
        "!log = []; m = fill(nn.Sequential(nn.Linear(2, 2), nn.ReLU())); x = torch.tensor([[1., 2.]], requires_grad=True)",
        "!hs = [m.register_forward_pre_hook(lambda mod, a: log.append('pre') or (a[0] * 2,))]",
        "!hs.append(m.register_forward_pre_hook(lambda mod, a, k: log.append(('prek', list(k))), with_kwargs=True, prepend=True))",
        "!hs.append(m.register_forward_hook(lambda mod, a, o: log.append('post') or o + 1))",
        "!hs.append(m.register_forward_hook(lambda mod, a, k, o: log.append('postk'), with_kwargs=True, prepend=True))",
        "!hs.append(m[0].register_forward_hook(lambda *x: log.append('inner')))",
        "!hs.append(m.register_full_backward_pre_hook(lambda mod, g: log.append(('bpre', show(g))) or (g[0] * 3,)))",
        "!hs.append(m.register_full_backward_hook(lambda mod, gi, go: log.append(('back', show(gi), show(go))) or (gi[0] * 10,)))",
        "!hs.append(m[0].register_full_backward_hook(lambda mod, gi, go: log.append(('b0', show(gi), show(go)))))",
        "m(x)", "m(x).sum().backward()", "x.grad", "log", "![h.remove() for h in hs]; log.clear()", "m(x)", "log",
        "!m.register_forward_hook(lambda mod, a, o: 1 / 0)",
        "!m.register_forward_hook(lambda mod, a, o: log.append('always'), always_call=True)",
        "!m.register_forward_hook(lambda mod, a, o: log.append('never'))", "m(x)", "log",
        "!m = fill(nn.Linear(2, 2)); m.register_forward_pre_hook(lambda mod, a, k: ((a[0],), {}), with_kwargs=True)", "m(x)",
        "!m = fill(nn.Linear(2, 2)); m.register_forward_pre_hook(lambda mod, a, k: 3, with_kwargs=True)", "m(x)",
        "!m = fill(nn.Linear(2, 2)); m.register_forward_pre_hook(lambda mod, a: a[0] + 1)", "m(x)",
        "!m = fill(nn.Linear(2, 2)); m.register_full_backward_hook(lambda *a: None)", "m.register_backward_hook(lambda *a: None)",
        "!m = fill(nn.Linear(2, 2)); m.register_backward_hook(lambda *a: None)", "m.register_full_backward_hook(lambda *a: None)",
        "!m = fill(nn.Linear(2, 2)); m.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))", "m(x).sum().backward()",
    ],
    "global hooks": [
        "!log = []; g = nn.modules.module",
        "!hs = [g.register_module_forward_pre_hook(lambda mod, a: log.append('pre'))]",
        "!hs.append(g.register_module_forward_hook(lambda mod, a, o: log.append('post')))",
        "!hs.append(g.register_module_full_backward_hook(lambda mod, gi, go: log.append('back')))",
        "!hs.append(g.register_module_full_backward_pre_hook(lambda mod, go: log.append('bpre')))",
        "!hs.append(g.register_module_module_registration_hook(lambda mod, n, s: log.append(('module', n))))",
        "!hs.append(g.register_module_parameter_registration_hook(lambda mod, n, s: log.append(('parameter', n))))",
        "!hs.append(g.register_module_buffer_registration_hook(lambda mod, n, s: log.append(('buffer', n))))",
        "!m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)); x = torch.ones(2, 2, requires_grad=True); m(x).sum().backward()",
        "![h.remove() for h in hs]", "log",
    ],
    "moving": [
        "!log = []; m = Net()",
        *(f"[str(t.dtype) for t in m.{to}.state_dict().values()]" for to in
          ("to(torch.float64)", "half()", "type(torch.float32)", "bfloat16()", "float()", "double()", "to(torch.ones(1))")),
        "m.to(torch.int32)", "str(m.to('meta').a.weight.device)", "[str(t.device) for t in m.to_empty(device='cpu').state_dict().values()]",
        "nn.Linear(1, 1, device='meta').to('cpu')", "!m = Net(); p = m.a.weight; m.double()", "m.a.weight is p",
        "m.requires_grad_(False).a.weight.requires_grad", "m.train(False).training", "m.train('x')", "m.eval().b[1].training",
        "!m.apply(lambda s: log.append(type(s).__name__))", "log", "m.zero_grad()", "m.cpu() is m",
        "m.to(dtype=torch.float32, device='cpu', non_blocking=True) is m",
        "nn.Conv2d(2, 2, 2).to(memory_format=torch.channels_last).weight.stride()",
        "nn.Linear(2, 2, dtype=torch.float64).weight.dtype", "nn.Linear(1, 1, device='meta').weight.is_meta",
    ],
    "sequences": [
        "!s = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))",
        "s[-1]", "s[0:2]", "s[5]", "s['a']", "len(s)", "s.pop(1)", "s", "s.insert(1, nn.Tanh())", "s.append(nn.ReLU())",
        "s.extend([nn.ReLU()])", "s + nn.Sequential(nn.ReLU())", "s * 2", "s + 3", "s.insert(99, nn.ReLU())", "nn.Sequential(3)",
        "nn.Sequential(nn.ReLU(), 3)", "s.__delitem__(0)", "s.__setitem__(0, nn.Sigmoid())", "s.__setitem__(0, 3)",
        "nn.Sequential({'a': nn.ReLU()})", "nn.Sequential(collections.OrderedDict(a=nn.ReLU()))", "s * -1", "s * 1.5",
        "!l = nn.ModuleList([nn.ReLU()])",
        "l + [nn.Tanh()]", "l.extend(3)", "l.append(3)", "l[1]", "l.insert(0, nn.Tanh())", "l.pop(-1)", "l[:1]", "l(1)", "nn.ReLU() in l",
        "nn.ModuleList(3)", "l.extend(nn.ModuleDict({'q': nn.ReLU()}))",
    ],
    "dictionaries": [
        "!d = nn.ModuleDict({'a': nn.ReLU()})",
        "d['b']", "d.update([('b', nn.Tanh())])", "d.update(3)", "d.update([('b',)])", "d.pop('a')", "list(d.items())", "d.clear()",
        "'a' in d", "d.update({'forward': nn.ReLU()})", "d.update([3])", "d.__setitem__('a', 3)", "d(1)", "d.update({'x.y': nn.ReLU()})",
        "!pl = nn.ParameterList([torch.ones(1), nn.Parameter(torch.ones(2)), 3])",
        "[type(x).__name__ for x in pl]", "pl.append(torch.ones(3))", "pl.extend(torch.ones(3))", "pl[9]", "pl[1:3]",
        "list(pl.state_dict())", "pl(1)", "pl + [torch.ones(1)]", "pl.__setitem__(0, torch.zeros(2))", "len(pl)", "nn.ParameterList(3)",
        "!pd = nn.ParameterDict({'a': torch.ones(1)})",
        "pd.update([('b', torch.ones(2))])", "pd | nn.ParameterDict({'c': torch.ones(1)})", "pd.get('z', 5)",
        "pd.setdefault('q', torch.ones(1))", "pd.popitem()", "pd[1]", "pd['zz']", "pd.fromkeys(['a'], torch.ones(1))", "list(pd)",
        "pd.copy()",
        "pd(1)", "list(reversed(pd))", "pd.update(3)", "pd.pop('nope')",
    ],
    "copies and calls": [
        "!m = fill(Net()); c = copy.deepcopy(m)", "(c.tied is c.a, c.a.weight is m.a.weight, c.a.weight.equal(m.a.weight))",
        "!c = copy.copy(m)", "c.a is m.a", "pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(1, 1))))",
        "!call = torch.func.functional_call; x = torch.ones(3, 2); m = fill(Net()).eval()",
        "call(m, {'p': torch.zeros(2)}, (x,))", "call(m, {'nope': torch.zeros(2)}, (x,))",
        "call(m, {'p': torch.zeros(2)}, (x,), {'scale': 2})",
        "call(m, {'a.weight': torch.zeros(3, 2)}, x)", "call(m, ({'p': torch.zeros(2)}, {'p': torch.zeros(2)}), x)",
        "call(m, {'a.weight': torch.zeros(3, 2), 'tied.weight': torch.ones(3, 2)}, x)",
        "call(m, {'a.weight': torch.zeros(3, 2)}, x, tie_weights=False)", "call(m, {'p': torch.zeros(2)}, x, strict=True)", "m.p",
        "hasattr(m, 'nope')", "call(m, {'zz.w': torch.ones(1)}, x)",
    ],
    "gradients": [
        "!u = nn.utils; ps = [nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(3))]",
        "!for p in ps: p.grad = torch.ones_like(p) * 3",
        "u.clip_grad_norm_(ps, 1.)", "[p.grad for p in ps]", "u.clip_grad_norm_(iter(ps), 1., norm_type=float('inf'))",
        "u.clip_grad_norm_([], 1.)", "u.clip_grad_norm_(ps[0], .1, 0.5)", "u.clip_grad_value_(ps, .05)", "[p.grad for p in ps]",
        "!ps[0].grad = torch.full((2, 2), float('nan'))", "u.clip_grad_norm_(ps, 1., error_if_nonfinite=True)", "u.clip_grad_norm_(ps, 1.)",
        "u.get_total_norm([torch.ones(2), torch.ones(3)], 1)", "u.clip_grad_norm(ps, 1.)", "u.parameters_to_vector(ps)",
        "u.vector_to_parameters(torch.arange(7.), ps)", "ps", "u.vector_to_parameters([1], ps)", "u.get_total_norm(ps[0])",
        "u.clip_grads_with_norm_(ps, 1., torch.tensor(10.))", "u.get_total_norm([])",
    ],
    "lazy": [
        "!m = nn.LazyLinear(3)", "m.weight", "m.weight.shape", "m.half().weight.dtype", "m.cpu()", "list(m.parameters())",
        "list(m.state_dict())", "m.share_memory()", "copy.deepcopy(m)", "pickle.loads(pickle.dumps(m))", "m.has_uninitialized_params()",
        "m.float()(torch.ones(2, 4)).shape", "m", "m.weight.shape", "!n = nn.LazyLinear(3)", "n.load_state_dict(m.state_dict())",
        "n.weight.shape", "m.load_state_dict(nn.LazyLinear(3).state_dict())", "nn.LazyConv2d(3, 2)(torch.ones(2, 2))",
        "nn.Sequential(nn.LazyConv1d(3, 2), nn.LazyBatchNorm1d())(torch.ones(2, 4, 5)).shape", "nn.LazyBatchNorm2d().running_mean",
        "nn.parameter.UninitializedParameter(dtype=torch.float64).dtype", "nn.parameter.is_lazy(nn.LazyLinear(1).weight)",
    ],
    "pruning": [
        "!pr = nn.utils.prune; m = fill(nn.Linear(4, 3)); m.weight.data += torch.arange(12.).reshape(3, 4) * 0.01",
        "pr.l1_unstructured(m, 'weight', 0.3)", "m.weight", "sorted(m.state_dict())",
        "pr.ln_structured(m, 'weight', 1, 2, 0)", "m.weight_mask", "[type(h).__name__ for h in m._forward_pre_hooks.values()]",
        "pr.is_pruned(m)", "pr.global_unstructured([(m, 'weight'), (m, 'bias')], pr.L1Unstructured, amount=9)", "m.weight", "m.bias",
        "pr.remove(m, 'weight')", "list(m.state_dict())", "pr.remove(m, 'weight')", "pr.identity(m, 'weight')", "m(torch.ones(1, 4))",
        "pr.custom_from_mask(m, 'weight', torch.eye(3, 4))", "m.weight", "pr.l1_unstructured(m, 'bias', 99)",
        "pr.l1_unstructured(m, 'bias', 1.5)", "pr.l1_unstructured(m, 'bias', 'x')", "pr.random_unstructured(m, 'bias', 2)",
        "pr.random_structured(nn.Linear(2, 2), 'weight', 1, 5)", "pr.random_structured(m, 'weight', 1, 1)",
        "pr.ln_structured(nn.Linear(2, 2), 'bias', 1, 2, 0)",
        "pr.L1Unstructured(2).prune(torch.tensor([3., -1., 2., 0.5]))", "copy.deepcopy(m).weight.shape",
        "pr.l1_unstructured(fill(nn.Linear(4, 3)), 'weight', 2, importance_scores=torch.arange(12.).reshape(3, 4)).weight",
        "pr.global_unstructured(3, pr.L1Unstructured)", "pr.global_unstructured([(m, 'bias')], pr.LnStructured, amount=1, n=2)",
    ],
    "parametrizations": [
        "!pz = nn.utils.parametrizations; pm = nn.utils.parametrize; m = fill(nn.Linear(3, 3))",
        "pz.weight_norm(m, 'weight', 0)", "list(m.state_dict())", "m.weight", "m(torch.ones(1, 3))", "pm.is_parametrized(m)",
        "pm.is_parametrized(m, 'bias')", "pm.type_before_parametrizations(m).__name__", "pm.remove_parametrizations(m, 'weight')",
        "m.weight",
        "pm.is_parametrized(m)", "pm.remove_parametrizations(m, 'weight')", "pz.orthogonal(m, 'weight', 'x')", "pz.orthogonal(m, 'bias')",
        "pz.orthogonal(m, 'zz')", "pz.orthogonal(m, 'weight', 'cayley', use_trivialization=False)", "m.weight", "m",
        "!class Twice(nn.Module):\n    def forward(self, x): return x * 2\n    def right_inverse(self, y): return y / 2",
        "!m = fill(nn.Linear(2, 2))", "pm.register_parametrization(m, 'weight', Twice())", "m.parametrizations.weight.original", "m.weight",
        "pm.register_parametrization(m, 'weight', Twice())", "m.parametrizations.weight.original", "setattr(m, 'weight', torch.ones(2, 2))",
        "m.parametrizations.weight.original", "pm.register_parametrization(m, 'zz', Twice())", "copy.deepcopy(m).weight",
        "!class Wider(nn.Module):\n    def forward(self, x): return torch.cat([x, x])",
        "pm.register_parametrization(nn.Linear(2, 2), 'weight', Wider())",
        "pm.register_parametrization(nn.Linear(2, 2), 'weight', nn.Softmax(0))",
        "!a = fill(nn.Linear(2, 2)); b = nn.Linear(2, 2); pm.register_parametrization(a, 'weight', Twice())",
        "pm.transfer_parametrizations_and_params(a, b)", "b.weight",
        "pm.remove_parametrizations(b, 'weight', leave_parametrized=False).weight",
        "!m = nn.utils.weight_norm(fill(nn.Linear(2, 3)))", "list(m.state_dict())", "m(torch.ones(1, 2))", "nn.utils.remove_weight_norm(m)",
        "nn.utils.remove_weight_norm(m)", "nn.utils.remove_spectral_norm(m)",
        "sorted(nn.utils.spectral_norm(nn.Linear(2, 3)).state_dict())",
    ],
    "flex attention": [
        "!fa = importlib.import_module(torch.__name__ + '.nn.attention.flex_attention')",
        "!causal = lambda b, h, q, k: q >= k", "!near = lambda b, h, q, k: (q - k).abs() <= 2",
        "!slope = lambda s, b, h, q, k: s - (h + 1) * (q - k)",
        "!bm = fa.create_block_mask(fa.and_masks(causal, near), None, None, 6, 6, device='cpu', BLOCK_SIZE=2)",
        "repr(bm)", "str(bm)", "bm.shape", "bm.numel()", "bm.sparsity()", "bm.to_dense()", "bm.as_tuple()[:10]",
        "!one = lambda b, h, q, k: (h == 1) & (b == 0)",
        "!b2 = fa.create_block_mask(fa.or_masks(causal, one), 2, 2, 5, 7, device='cpu', BLOCK_SIZE=(2, 3))",
        "b2.to_dense()", "b2.full_kv_indices", "b2._adjust(3, 4).to_dense()", "b2[0, 1].kv_indices", "b2[-1].shape",
        "b2.to('cpu').q_indices",
        "b2.to_string(grid_size=2, limit=1)", "fa.create_mask(causal, 1, 1, 3, 4, device='cpu')",
        "fa.create_mask(lambda s, b, h, q, k: torch.where(q > k, s, -float('inf')), 1, 2, 2, 2, device='cpu')",
        "fa.BlockMask.from_kv_blocks(torch.tensor([[[1, 2]]]).int(), torch.tensor([[[[0, 1], [0, 1]]]]).int(), BLOCK_SIZE=3).q_num_blocks",
        "!x = torch.linspace(-1, 1, 48).reshape(1, 2, 6, 4); fa.flex_attention(x, x, x)",  # torch recommends its compiler, once
        "fa.flex_attention(x, x, x, block_mask=bm)", "fa.flex_attention(x, x.flip(2), x, score_mod=slope, scale=0.3)",
        "fa.flex_attention(x, x, x, block_mask=bm, return_aux=fa.AuxRequest(lse=True))[1].lse",
        "fa.flex_attention(x, x[:, :1], x[:, :1])", "fa.flex_attention(x, x[:, :1], x[:, :1], enable_gqa=True).shape",
        "fa.flex_attention(x[0], x[0], x[0])", "fa.flex_attention(x[:, :, :3], x, x, block_mask=bm)",
        "fa.flex_attention(x, x, x, block_mask=bm[0])", "fa.flex_attention(x, x, x, return_lse=True, return_aux=fa.AuxRequest())",
    ],
    "layer errors": [
        "nn.Linear(2, 2)(torch.ones(3, 3))", "nn.BatchNorm2d(2)(torch.ones(2, 2))", "nn.BatchNorm1d(2)(torch.ones(1, 2))",
        "nn.Embedding(3, 2)(torch.tensor([5]))", "nn.LayerNorm(3)(torch.ones(2, 2))", "nn.GroupNorm(3, 4)", "nn.Dropout(2.)",
        "nn.LSTM(2, 2)(torch.ones(3, 1, 3))", "nn.LSTM(2, 2)(torch.ones(3, 1, 2), (torch.ones(1, 2, 2), torch.ones(1, 1, 2)))",
        "nn.LSTM(2, 2)(torch.ones(2))", "nn.MultiheadAttention(5, 2)", "nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([3, 0]))",
        "nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([0]))", "nn.MSELoss()(torch.ones(2), torch.ones(3, 1))",
        "nn.MSELoss(reduction='x')(torch.ones(2), torch.ones(2))", "nn.BCELoss()(torch.ones(2) * 2, torch.ones(2))",
        "nn.Conv2d(3, 4, 3, groups=2)", "nn.Conv2d(3, 4, 3, padding='x')", "nn.Conv2d(3, 4, 3, padding='same', stride=2)",
        "nn.PixelShuffle(2)(torch.ones(1, 3, 2, 2))", "nn.Upsample(scale_factor=2, mode='bilinear')(torch.ones(1, 2, 3))",
        "nn.Upsample()(torch.ones(1, 2, 3))", "nn.Softmax()(torch.ones(2, 2))", "F.softmax(torch.ones(2, 2))", "nn.GLU()(torch.ones(3))",
        "nn.RNN(1, 1, nonlinearity='q')", "nn.RNN(1, 1, dropout=.5)", "nn.Flatten()(torch.ones(()))",
        "nn.EmbeddingBag(3, 2)(torch.tensor([0, 1]))", "nn.EmbeddingBag(3, 2)(torch.tensor([[0, 1]]), torch.tensor([0]))",
        "nn.Bilinear(0, 1, 1)", "nn.Hardtanh(2, 1)", "nn.AdaptiveLogSoftmaxWithLoss(2, 5, [7])", "F.one_hot(torch.tensor([1, 2]), 2)",
        "F.nll_loss(torch.ones(2, 3, 2), torch.tensor([0, 1]))", "F.mse_loss(torch.ones(2), torch.ones(2), size_average=False)",
        "F.dropout(torch.ones(2), p=-1)", "F.interpolate(torch.ones(1, 1, 2, 2), scale_factor=(1, 2, 3))",
        "F.pad(torch.ones(1, 1, 2), (1,))", "F.pad(torch.ones(1, 1, 2), (2, 2), mode='reflect')",
        "F.layer_norm(torch.ones(2, 3), (3,), weight=torch.ones(2))", "F.embedding(torch.tensor([0]), torch.ones(2, 2), padding_idx=5)",
        "F.kl_div(torch.ones(2), torch.ones(2))", "F.binary_cross_entropy(torch.ones(2), torch.ones(3))",
        "F.gelu(torch.ones(1), approximate='x')", "F.prelu(torch.ones(2, 3), torch.ones(2))", "nn.LazyLinear(2)(torch.ones(2, 3)).shape",
        "nn.LinearCrossEntropyLoss(2, 3, weight=torch.ones(2))", "F.fractional_max_pool2d(torch.ones(1, 1, 4, 4), 2)",
        "nn.FractionalMaxPool2d(2, output_size=2, output_ratio=.5)", "nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))",
        "nn.factory_kwargs({'device': 'cpu', 'x': 1})", "nn.factory_kwargs({'dtype': 1, 'factory_kwargs': {'dtype': 2}})",
        "nn.Container(a=nn.ReLU())",
    ],
    "tensors of sequences": [
        *(f"torch.tensor({data})" for data in (
            "[torch.tensor(1, dtype=torch.int32)]", "[torch.tensor(1.5, dtype=torch.float64), 2.]", "[torch.tensor(1), 2.5]",
            "[torch.tensor(2, dtype=torch.uint8), torch.tensor(1, dtype=torch.int8)]", "[torch.ones(1, 1), 2]", "[[torch.ones(1)], [2.]]",
            "[torch.ones(2)]", "[torch.ones(0)]", "[torch.tensor(1.).half(), torch.tensor(1)]", "[torch.tensor(1), None]",
            "(torch.tensor(1), torch.tensor(2)), dtype=torch.float64", "[[1, 2], [3]]", "[[1, 2], 3]", "[1, [2, 3]]",
            "[[[1], [2]], [[3], [4, 5]]]", "[[1], []]", "[[], [1]]", "[[]]", "[]", "[1, None]", "[None]", "None", "[1 << 70]", "1 << 70",
            "[1 << 63]", "[1 << 63], dtype=torch.uint64", "[1.5, 1 << 70]", "[1, object()]", "[1, 'a']", "['a']", "'a'", "[True, 1.5]",
            "[1, np.float64(2)]", "[np.int32(1), 2]", "[np.int64(3), 2.5]", "[np.float32(1), 2.]", "[np.bool_(True), False]",
            "[np.float32(1), np.float64(1)]", "np.array([1.], dtype='>f4')", "np.array([1], dtype=object)",
        )),
        "torch.from_numpy(np.array([1], dtype='>i8'))", "torch.from_numpy(np.zeros(1, 'M8[s]'))", "torch.manual_seed(1 << 70)",
        "torch.set_rng_state(torch.ones(3))", "torch.Generator().set_state(3)", "torch.Generator().manual_seed('x')",
        "!class T(torch.Tensor): pass", "!class L(nn.Parameter): pass", "!t = torch.ones(2, 3).as_subclass(T)",
        "[str(q) for q in (t, t + 1, torch.ones(30).double().as_subclass(T), nn.Parameter(torch.ones(1)), L(torch.ones(1)))]",
    ],
    "copies of tensors": [
        "!x = torch.arange(6.).view(2, 3); c = copy.deepcopy({'a': x, 'row': x[1], 't': x.t(), 'p': nn.Parameter(x)}); c['a'][1, 0] = 77",
        "c", "(c['t'].stride(), c['row'].storage_offset(), c['row'].untyped_storage().nbytes(), x[1, 0].item())",
        "!p = nn.Parameter(torch.ones(2)); p.tag = 'x'; t = torch.ones(2); t.tag = ['x']",
        "[hasattr(f(q), 'tag') for f in (copy.copy, copy.deepcopy) for q in (p, t)]", "copy.deepcopy(t).tag is t.tag",
        "[copy.copy(q).data_ptr() == q.data_ptr() for q in (p, t)]", "type(copy.copy(p)) is nn.Parameter",
        "!g = torch.ones(2, requires_grad=True); y = g * 2; g.grad = torch.ones(2)",
        "(copy.copy(y), copy.copy(y).is_leaf, copy.copy(g).grad)",
        "copy.deepcopy(y)", "copy.deepcopy(g).grad", "pickle.loads(pickle.dumps(y))",
        "[pickle.loads(pickle.dumps(q)).stride() for q in (x.t(), x[None].transpose(0, 2), torch.ones(()), torch.ones(0, 3))]",
        "pickle.loads(pickle.dumps(t)).tag", "pickle.loads(pickle.dumps(x[:, 1]))",
        "[copy.deepcopy(x.expand(2, 2, 3)).stride(), copy.deepcopy(nn.Parameter(x.t())).stride()]",
        "copy.copy(nn.Linear(2, 2)).weight.shape", "copy.copy(nn.LazyLinear(2).weight)", "nn.Parameter(3)",
    ],
    "recurrent errors": [
        "!m = fill(nn.LSTM(3, 4)); c = fill(nn.LSTMCell(3, 4)); x = torch.ones(5, 2, 3)",
        "m(x, (torch.zeros(1, 4), torch.ones(1, 4)))", "m(x.double())", "m(x[:0])", "nn.RNNBase('FOO', 3, 4)", "c(torch.ones(2, 4))",
        "c(torch.ones(2, 3), (torch.ones(2, 4), torch.ones(2, 3)))", "c(torch.ones(2, 3), (torch.ones(1, 4), torch.ones(1, 4)))",
        "nn.utils.rnn.pad_sequence([])",
    ],
    "padding of encoders": [
        "!layer = lambda **k: nn.TransformerEncoderLayer(4, 2, 8, dropout=0., **k)",
        "!pad = torch.tensor([[False, False, True], [False] * 3]); x = torch.arange(24.).view(2, 3, 4)",
        "!m = fill(nn.TransformerEncoder(layer(batch_first=True), 2, norm=fill(nn.LayerNorm(4)))).eval()",
        "[nn.TransformerEncoder(layer(**k), 1).use_nested_tensor for k in ({}, {'batch_first': True})]",
        "nn.TransformerEncoder(layer(batch_first=True, norm_first=True), 1).use_nested_tensor",
        "nn.TransformerEncoder(layer(batch_first=True, bias=False), 1).use_nested_tensor",
        "m(x, src_key_padding_mask=pad)", "m.requires_grad_(False)(x, src_key_padding_mask=pad.flip(1))",
        "m(x, src_key_padding_mask=pad, mask=torch.zeros(3, 3))", "m.train()(x, src_key_padding_mask=pad)",
        "m.eval().layers[0](x, src_mask=torch.zeros(3, 3), src_key_padding_mask=pad)",
    ],
    "loss errors": [
        "!x = torch.arange(12.).view(4, 3); y = torch.tensor([0, 2, 1, 1])",
        "F.cross_entropy(x, x.softmax(1), ignore_index=1)", "F.cross_entropy(x, y.float())", "F.cross_entropy(x, y.int())",
        "F.cross_entropy(x, y.to(torch.uint8))", "F.cross_entropy(x, torch.ones(4, 3, dtype=torch.long))",
        "F.cross_entropy(x, y, label_smoothing=2.0)", "F.cross_entropy(x, y, weight=torch.ones(2))", "F.nll_loss(x, y.unsqueeze(1))",
        "F.binary_cross_entropy(x.sigmoid(), torch.ones(4, 3, dtype=torch.long))",
        "F.binary_cross_entropy(x.sigmoid(), torch.ones(4, 3).double())",
        "F.cosine_embedding_loss(x, x, torch.ones(4, 1))", "F.gaussian_nll_loss(x, x, torch.ones(5))",
        "F.gaussian_nll_loss(x, x, torch.ones(4, 1))",
        "nn.BatchNorm1d(3)(torch.ones(4, 2))", "nn.BatchNorm1d(1)(torch.ones(4, 3))", "nn.BatchNorm1d(1).eval()(torch.ones(4, 3))",
        "F.batch_norm(x, None, None, torch.ones(2), training=True)", "nn.utils.weight_norm(nn.Linear(2, 2)).weight_g.shape",
    ],
    "initialisers": [
        "!i = nn.init",
        "i.calculate_gain('foo')", "i.calculate_gain('leaky_relu', .2)", "i.kaiming_uniform_(torch.ones(2))", "i.eye_(torch.ones(2))",
        "i.dirac_(torch.ones(2, 2))", "i.dirac_(torch.ones(4, 2, 3), 2)", "i.sparse_(torch.ones(2), .1)", "i.orthogonal_(torch.ones(2))",
        "i.constant_(torch.ones(2), 3.)", "i.xavier_uniform(torch.ones(2, 2)).shape", "i.kaiming_normal_(torch.ones(2, 2), mode='x')",
        "i.trunc_normal_(torch.ones(2), mean=9.).shape", "i.kaiming_normal_(torch.ones(0, 2))", "i.eye_(torch.ones(2, 3))",
        "i.uniform_(torch.ones(2), generator=torch.Generator()).shape",
    ],
}  # fmt: skip


def show(value: Any) -> Any:
    """Plain data that describes tensors and modules."""
    if hasattr(value, "detach"):
        if value.device.type == "meta" or type(value).__name__.startswith("Uninitialized"):
            return [type(value).__name__, str(value.dtype)]
        numbers = [round(float(v), 4) + 0.0 for v in value.detach().double().flatten().tolist()]
        return [list(value.shape), str(value.dtype), numbers, value.requires_grad]
    if isinstance(value, dict):
        return [type(value).__name__, [[str(k), show(v)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return [show(v) for v in value]
    if isinstance(value, (int, float, str, bool, type(None))):
        return value
    return repr(value) if hasattr(value, "named_parameters") or not callable(value) else type(value).__name__


def outcomes(torch: Any, group: str) -> list[list[Any]]:
    """[line, result or error, warnings] of every line that is compared."""
    space: dict[str, Any] = {"np": np, "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "collections": collections, "copy": copy,
                             "pickle": pickle, "io": io, "importlib": importlib, "show": show}  # fmt: skip
    exec(NET, space)
    result = []
    for line in GROUPS[group]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if line.startswith("!"):
                    exec(line[1:], space)
                    continue
                got: Any = show(eval(line, space))
            except Exception as error:
                got = {"error": type(error).__name__, "text": str(error)}
        result.append([line, got, sorted({w.category.__name__ for w in caught})])
    return result
