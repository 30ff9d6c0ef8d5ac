"""Accepted calls that return or change an object: `call >> use`, in which `use` reads the object under the name `it`.

calls.py reads them and defines further names besides `tests.data.calls.names`. A line holds calls separated by ` | `.
"""
from __future__ import annotations

import re
from typing import Final

from tests.distributions.cases import DISTRIBUTIONS, MAPS, TRANSFORMS

_TABLE: Final = """
T.func.grad(cube) >> it(t('f4', 3)) | T.func.grad_and_value(cube) >> it(t('f4', 3)) | T.func.hessian(cube) >> it(t('f4', 3))
T.func.vmap(T.sin) >> it(t('f4', 3, 2)) | T.func.jacrev(T.sin) >> it(t('f4', 3)) | T.func.jacfwd(T.sin) >> it(t('f4', 3))
T.func.vjp(T.sin, t('f4', 3)) >> it[0] | T.func.jvp(T.sin, (t('f4', 3),), (T.ones(3),)) >> it
T.func.functional_call(net, dict(net.named_parameters()), (x,)) >> it | T.nn.utils.clip_grad_norm_(ps, .1) >> [p.grad for p in ps]
T.nn.utils.clip_grad_value_(ps, .1) >> [p.grad for p in ps] | T.nn.utils.clip_grad_norm(ps, .1) >> [p.grad for p in ps]
T.nn.utils.clip_grads_with_norm_(ps, .1, T.tensor(2.)) >> [p.grad for p in ps] | T.nn.utils.weight_norm(net) >> net(x)
T.nn.utils.spectral_norm(net) >> net(x) | T.nn.utils.remove_weight_norm(T.nn.utils.weight_norm(net)) >> net(x)
T.nn.utils.remove_spectral_norm(T.nn.utils.spectral_norm(net)) >> net(x) | T.nn.utils.parametrizations.weight_norm(net) >> net(x)
T.nn.utils.parametrizations.spectral_norm(net) >> net(x) | T.nn.utils.parametrizations.orthogonal(net) >> net(x)
T.nn.utils.parametrize.register_parametrization(net, 'weight', nn.Tanh()) >> net(x)
T.nn.utils.parametrize.remove_parametrizations(T.nn.utils.parametrizations.weight_norm(net), 'weight') >> net(x)
T.nn.utils.parametrize.is_parametrized(net) >> it | T.nn.utils.parametrize.ParametrizationList([nn.Tanh()], net.weight) >> it()
T.nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval()) >> it.weight
T.nn.utils.fuse_conv_bn_weights(t('f4', 2, 3, 1, 1), None, T.zeros(2), T.ones(2), 1e-5, T.ones(2), T.zeros(2)) >> it
T.nn.utils.prune.l1_unstructured(net, 'weight', .5) >> net(x) | T.nn.utils.prune.ln_structured(net, 'weight', .5, 2, 0) >> net(x)
T.nn.utils.prune.global_unstructured([(net, 'weight')], T.nn.utils.prune.L1Unstructured, amount=.5) >> net(x)
T.nn.utils.prune.LnStructured(.5, 2) >> it.compute_mask(t('f4', 3, 4), T.ones(3, 4))
T.nn.utils.prune.RandomStructured(.5) >> it.compute_mask(t('f4', 3, 4), T.ones(3, 4))
T.nn.utils.rnn.pack_padded_sequence(t('f4', 3, 2, 4), T.tensor([3, 2])) >> it.data
T.nn.utils.rnn.pack_sequence([t('f4', 3), t('f4', 2)]) >> it.data
T.nn.utils.rnn.pad_packed_sequence(T.nn.utils.rnn.pack_padded_sequence(t('f4', 3, 2, 4), T.tensor([3, 2]))) >> it
T.nn.utils.rnn.pad_sequence([t('f4', 3), t('f4', 2)]) >> it | T.nn.utils.rnn.unpad_sequence(t('f4', 3, 2), T.tensor([3, 2])) >> it
optim.SparseAdam(table.parameters()) >> (table(at(5, 3)).sum().backward(), it.step(), table.weight)
T.optim.swa_utils.get_ema_avg_fn() >> it(T.ones(2), T.zeros(2), 3)
T.optim.swa_utils.AveragedModel(net) >> (it.update_parameters(net), list(it.module.parameters()))
T.optim.swa_utils.SWALR(sgd, .05) >> [(sgd.step(), it.step(), float(sgd.param_groups[0]['lr'])) for _ in range(4)]
T.optim.swa_utils.update_bn([t('f4', 3, 2)], norm) >> norm.running_mean | T.utils.data.DataLoader(list(range(10))) >> list(it)
T.utils.data.RandomSampler(range(5)) >> list(it) | T.utils.data.SubsetRandomSampler([1, 2, 3]) >> list(it)
T.utils.data.WeightedRandomSampler([.1, .9], 3) >> list(it) | T.utils.data.random_split(list(range(5)), [2, 3]) >> [list(s) for s in it]
T.utils.data.DistributedSampler(list(range(8)), 2, 0) >> list(it)
T.utils.checkpoint.checkpoint(T.sin, t('f4', 3), use_reentrant=False) >> it
T.utils.checkpoint.checkpoint_sequential([nn.ReLU(), nn.Tanh()], 1, t('f4', 3), use_reentrant=False) >> it
T.autograd.functional.jacobian(T.sin, t('f4', 3)) >> it | T.autograd.functional.hessian(cube, t('f4', 3)) >> it
T.autograd.functional.hvp(cube, t('f4', 3), T.ones(3)) >> it | T.autograd.functional.vhp(cube, t('f4', 3), T.ones(3)) >> it
T.autograd.functional.vjp(T.sin, t('f4', 3), T.ones(3)) >> it | T.autograd.functional.jvp(T.sin, t('f4', 3), T.ones(3)) >> it
T.autograd.grad(cube(leaf), leaf) >> it | T.autograd.backward(cube(leaf)) >> leaf.grad | T.autograd.gradcheck(cube, (leaf,)) >> it
T.autograd.gradgradcheck(cube, (leaf,)) >> it | T.autograd.detect_anomaly() >> under(it, lambda: T.ones(2))
T.autograd.inference_mode() >> under(it, lambda: T.ones(2).is_inference())
T.inference_mode() >> under(it, lambda: T.ones(2).is_inference()) | T.autocast('cpu') >> under(it, lambda: T.mm(x, x.T))
T.amp.autocast('cpu') >> under(it, lambda: T.mm(x, x.T)) | T.amp.GradScaler('cpu') >> it.scale(T.ones(1))
T.random.fork_rng() >> under(it, lambda: T.ones(2)) | T.set_grad_enabled(True) >> T.is_grad_enabled()
T.testing.make_tensor((3,), dtype=T.float32, device='cpu') >> it | T.testing.assert_close(T.ones(3), T.ones(3) + 1e-9) >> 'equal'
T.testing.assert_allclose(T.ones(3), T.ones(3) + 1e-9) >> 'equal'
T.profiler.schedule(wait=1, warmup=1, active=1) >> [str(it(i)) for i in range(7)]
T.profiler.record_function('f') >> under(it, lambda: T.ones(2)) | T.load(saved(T.ones(2))) >> it
T.save(T.ones(2), buffer) >> T.load(again(buffer)) | nn.Parameter(t('f4', 3)) >> it | nn.Buffer(t('f4', 3)) >> (it, it.persistent)
nn.NLLLoss2d() >> it(T.log_softmax(t('f4', 2, 3, 2, 2), 1), at(3, 2, 2, 2)) | nn.RNNBase('GRU', 3, 4) >> list(it.parameters())
T.Generator() >> it.initial_seed() | T.get_device_module() >> 'module' | T.is_autocast_enabled() >> it | T.finfo() >> it.eps
F.multi_head_attention_forward(*3 * [t('f4', 3, 2, 4)], 4, 2, t('f4', 12, 4), None, None, None, False, 0., t('f4', 4, 4), None) >> it
T.signal.windows.bartlett(8) >> it | T.signal.windows.blackman(8) >> it | T.signal.windows.cosine(8) >> it
T.signal.windows.exponential(8) >> it | T.signal.windows.gaussian(8) >> it | T.signal.windows.general_cosine(8, a=[.5, .5]) >> it
T.signal.windows.general_hamming(8) >> it | T.signal.windows.hamming(8) >> it | T.signal.windows.hann(8) >> it
T.signal.windows.kaiser(8) >> it | T.signal.windows.nuttall(8) >> it | T.abs_(t('f4', 3).abs()) >> it | T.acos_(t('f4', 3).abs()) >> it
T.acosh_(t('f4', 3).abs()) >> it | T.arccos_(t('f4', 3).abs()) >> it | T.arccosh_(t('f4', 3).abs()) >> it
T.arcsin_(t('f4', 3).abs()) >> it | T.arcsinh_(t('f4', 3).abs()) >> it | T.arctan_(t('f4', 3).abs()) >> it
T.arctanh_(t('f4', 3).abs()) >> it | T.asin_(t('f4', 3).abs()) >> it | T.asinh_(t('f4', 3).abs()) >> it | T.atan_(t('f4', 3).abs()) >> it
T.atanh_(t('f4', 3).abs()) >> it | T.ceil_(t('f4', 3).abs()) >> it | T.cos_(t('f4', 3).abs()) >> it | T.cosh_(t('f4', 3).abs()) >> it
T.deg2rad_(t('f4', 3).abs()) >> it | T.erf_(t('f4', 3).abs()) >> it | T.erfc_(t('f4', 3).abs()) >> it | T.exp_(t('f4', 3).abs()) >> it
T.exp2_(t('f4', 3).abs()) >> it | T.expm1_(t('f4', 3).abs()) >> it | T.fix_(t('f4', 3).abs()) >> it | T.floor_(t('f4', 3).abs()) >> it
T.frac_(t('f4', 3).abs()) >> it | T.i0_(t('f4', 3).abs()) >> it | T.log_(t('f4', 3).abs()) >> it | T.log10_(t('f4', 3).abs()) >> it
T.log1p_(t('f4', 3).abs()) >> it | T.log2_(t('f4', 3).abs()) >> it | T.neg_(t('f4', 3).abs()) >> it | T.negative_(t('f4', 3).abs()) >> it
T.rad2deg_(t('f4', 3).abs()) >> it | T.reciprocal_(t('f4', 3).abs()) >> it | T.rsqrt_(t('f4', 3).abs()) >> it
T.sigmoid_(t('f4', 3).abs()) >> it | T.sin_(t('f4', 3).abs()) >> it | T.sinc_(t('f4', 3).abs()) >> it | T.sinh_(t('f4', 3).abs()) >> it
T.sqrt_(t('f4', 3).abs()) >> it | T.square_(t('f4', 3).abs()) >> it | T.tan_(t('f4', 3).abs()) >> it | T.tanh_(t('f4', 3).abs()) >> it
T.trunc_(t('f4', 3).abs()) >> it | T.celu_(t('f4', 3).abs()) >> it | T.clamp_(t('f4', 3), -.5, .5) >> it
T.clip_(t('f4', 3), -.5, .5) >> it | T.gcd_(t('i8', 3), t('i8', 3)) >> it | T.lcm_(t('i8', 3), t('i8', 3)) >> it
T.xlogy_(t('f4', 3), t('f4', 3).abs()) >> it | T.resize_as_(t('f4', 3), t('f4', 2)) >> it.shape
T.index_put_(t('f4', 3), (at(3, 2),), t('f4', 2)) >> it | T.greater(t('f4', 3), t('f4', 3)) >> it
T.greater_equal(t('f4', 3), t('f4', 3)) >> it | T.less(t('f4', 3), t('f4', 3)) >> it | T.less_equal(t('f4', 3), t('f4', 3)) >> it
T.not_equal(t('f4', 3), t('f4', 3)) >> it | T.arctan2(t('f4', 3), t('f4', 3)) >> it | T.special.erfinv(t('f4', 3).abs()) >> it
T.special.exp2(t('f4', 3).abs()) >> it | T.special.expm1(t('f4', 3).abs()) >> it | T.special.i0(t('f4', 3).abs()) >> it
T.special.log1p(t('f4', 3).abs()) >> it | T.empty_permuted((2, 3), (0, 1), device='meta') >> it
T.conv_tbc(t('f4', 5, 2, 3), t('f4', 3, 3, 4), t('f4', 4)) >> it | T.selu(t('f4', 3)) >> it | T.threshold(t('f4', 5), .1, 7.) >> it
T.unsafe_split_with_sizes(t('f4', 7), [3, 4]) >> it | T.hash_tensor(t('f4', 3)) >> it
F.fractional_max_pool2d_with_indices(t('f4', 2, 3, 6, 6), 2, output_ratio=(.5, .5), _random_samples=T.full((2, 3, 2), .4)) >> it
F.fractional_max_pool3d_with_indices(t('f4', 2, 3, 6, 6, 6), 2, output_ratio=(.5, .5, .5), _random_samples=T.full((2, 3, 3), .4)) >> it
"""


def _distributions() -> list[str]:
    """Each distribution at a value, and each transform at a point; `f8` and `i8` make their tensors."""
    found = [f"{made} >> it.log_prob({value})" for made, value in DISTRIBUTIONS.values()]
    found += [f"{made} >> it({point})" for made, point in (TRANSFORMS | MAPS).items() if "_to(" not in made and not made.endswith(".inv")]
    return [re.sub(r"\bL\(", "i8(", re.sub(r"\bT\(", "f8(", text)) for text in found]


OBJECT_CALLS: Final = tuple(part.strip() for line in _TABLE.strip().splitlines() for part in line.split(" | ")) + tuple(_distributions())
