"""Rarely used functions against values of torch 2.13: windows, multi-dimensional histograms, native norms, weak mappings."""
from __future__ import annotations

import gc
import math
from typing import Any

import pytest

import eager as torch
from eager import distributions as D  # noqa: N812
from eager import storage
from eager.signal import windows
from eager.utils.weak import TensorWeakRef, WeakIdKeyDictionary

# the first four of seven samples: symmetric, periodic
WINDOWS: dict[str, tuple[list[float], list[float]]] = {
    "bartlett": ([0.0, 0.33333337, 0.6666667, 1.0], [0.0, 0.28571427, 0.5714285, 0.85714287]),
    "blackman": ([0.0, 0.13, 0.63, 1.0], [0.0, 0.0904534, 0.4591829, 0.9203636]),
    "cosine": ([0.22252093, 0.6234898, 0.90096885, 1.0], [0.19509032, 0.55557024, 0.8314696, 0.98078530]),
    "exponential": ([0.04978707, 0.13533528, 0.36787945, 1.0], [0.03019738, 0.08208500, 0.22313017, 0.60653067]),
    "gaussian": ([0.011109, 0.13533533, 0.6065307, 1.0], [0.00218749, 0.04393693, 0.32465243, 0.8824969]),
    "hamming": ([0.08, 0.31, 0.77, 1.0], [0.08, 0.2531947, 0.6423596, 0.9544457]),
    "hann": ([0.0, 0.25, 0.75, 1.0], [0.0, 0.18825507, 0.6112604, 0.9504844]),
    "kaiser": ([5.27734e-05, 0.05475936, 0.5188446, 1.0], [5.27734e-05, 0.03276829, 0.33089882, 0.88886762]),
    "nuttall": ([0.0003628, 0.0613345, 0.5292299, 1.0], [0.0003628, 0.0377758, 0.3427275, 0.8918518]),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("sym", [True, False])
def test_windows_equal_torchs(name: str, sym: bool) -> None:
    made = getattr(windows, name)(7, sym=sym)
    assert made[:4].tolist() == pytest.approx(WINDOWS[name][0 if sym else 1], abs=2e-6) and made.dtype is torch.float32
    mirrored = made if sym else made[1:]
    assert torch.allclose(mirrored, mirrored.flip(0), atol=1e-5)
    assert getattr(windows, name)(1, sym=sym).tolist() == [1.0] and getattr(windows, name)(0).shape == (0,)


def test_windows_refuse_the_arguments_that_torch_refuses() -> None:
    with pytest.raises(ValueError, match="requires non-negative window length, got M=-1"):
        windows.hann(-1)
    with pytest.raises(ValueError, match="expects float32 or float64 dtypes"):
        windows.hann(3, dtype=torch.int32)
    with pytest.raises(ValueError, match="Center must be None"):
        windows.exponential(3, center=1.0)
    with pytest.raises(ValueError, match="cannot be empty"):
        windows.general_cosine(3, a=[])


def test_histograms_of_points_in_space() -> None:
    points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    hist, edges = torch.histogramdd(points, bins=[3, 3], weight=torch.tensor([1.0, 2.0, 4.0, 8.0]))
    assert hist.tolist() == [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [4.0, 0.0, 8.0]]
    assert torch.allclose(edges[0], torch.tensor([0.0, 2 / 3, 4 / 3, 2.0])) and len(edges) == 2
    dense = torch.histogramdd(points, bins=2, range=[0.0, 2.0, 0.0, 2.0], density=True)
    assert dense.hist.sum().item() == pytest.approx(1.0)
    given = torch.histogramdd(points, bins=[torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0])])
    assert given.hist.tolist() == [[1.0], [2.0]]
    with pytest.raises(RuntimeError, match="size of bins must be equal to the innermost dimension"):
        torch.histogramdd(points, bins=[3])


def test_native_norms_give_their_moments() -> None:
    x = torch.arange(24.0).reshape(2, 4, 3)
    y, mean, rstd = torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)
    assert torch.equal(y, torch.nn.functional.group_norm(x, 2)) and mean.tolist() == [[2.5, 8.5], [14.5, 20.5]]
    assert torch.allclose(rstd, torch.full((2, 2), 1 / math.sqrt(35 / 12 + 1e-5)))
    y, mean, rstd = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    assert mean.tolist() == [7.0, 10.0, 13.0, 16.0] and torch.allclose(rstd, torch.full((4,), 1 / math.sqrt(36.6666667 + 1e-5)))
    assert torch.equal(torch.native_batch_norm(x, None, None, mean, rstd, False, 0.1, 1e-5)[1], torch.empty(0))


def test_embedding_bag_at_the_top_level_takes_the_weight_first() -> None:
    weight, at = torch.arange(12.0).reshape(6, 2), torch.tensor([1, 2, 4, 5, 4])
    offsets = torch.tensor([0, 2])
    bags, bag_of, sizes, _ = torch.embedding_bag(weight, at, offsets)
    assert bags.tolist() == [[6.0, 8.0], [26.0, 29.0]] and bag_of.tolist() == [0, 0, 1, 1, 1] and sizes.tolist() == [2, 3]
    bags, _, _, rows = torch.embedding_bag(weight, at, offsets, mode=2)
    assert bags.tolist() == [[4.0, 5.0], [10.0, 11.0]] and rows.tolist() == [[2, 2], [5, 5]]


def test_embedding_bag_says_which_row_each_maximum_is_from() -> None:
    weight = torch.tensor([[3.0, 0.0], [1.0, 5.0], [3.0, 2.0]])
    at, offsets = torch.tensor([1, 0, 2, 2]), torch.tensor([0, 3, 3, 4])  # the last two bags but one are [] and [2], then []
    bags, _, sizes, rows = torch.embedding_bag(weight, at, offsets, mode=2)
    assert sizes.tolist() == [3, 0, 1, 0]
    assert rows.tolist() == [[0, 1], [0, 0], [2, 2], [0, 0]]  # the first of equal ones
    assert bags.tolist() == [[3.0, 5.0], [0.0, 0.0], [3.0, 2.0], [0.0, 0.0]]
    assert torch.embedding_bag(weight, at, offsets, False, 2, False, None, False, 0)[3].tolist() == [[2, 1], [0, 0], [2, 2], [0, 0]]
    assert torch.embedding_bag(weight, at[:0], torch.tensor([0, 0]), mode=2)[3].tolist() == [[0, 0], [0, 0]]


def test_grid_samplers_take_modes_as_numbers() -> None:
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert torch.grid_sampler_2d(image, torch.zeros(1, 1, 1, 2), 0, 0, False).item() == 7.5


def test_the_generalised_pareto_distribution() -> None:
    d = D.GeneralizedPareto(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]), torch.tensor([0.3, -0.2]))
    v = torch.tensor([0.5, 3.0])
    assert d.log_prob(v).tolist() == pytest.approx([-0.605635, -1.585721], abs=1e-5)
    assert torch.allclose(d.icdf(d.cdf(v)), v, atol=1e-5) and d.mean.tolist() == pytest.approx([1 / 0.7, 1 + 2 / 1.2])
    assert D.GeneralizedPareto(0.0, 1.0, 0.0).cdf(torch.tensor(0.5)).item() == pytest.approx(1 - math.exp(-0.5))
    assert d.expand((3, 2)).sample((4,)).shape == (4, 3, 2) and D.GeneralizedPareto(0.0, 1.0, 1.0).mean.item() == math.inf
    torch.manual_seed(0)
    assert D.GeneralizedPareto(1.0, 2.0, -0.2).sample((20000,)).mean().item() == pytest.approx(1 + 2 / 1.2, abs=0.05)
    with pytest.raises(ValueError, match="within the support"):
        d.log_prob(torch.tensor([-1.0, 3.0]))


def test_factors_of_random_correlation_matrices() -> None:
    lower = torch.tensor([[1.0, 0, 0], [0.6, 0.8, 0], [0.0, 0.6, 0.8]])
    d = D.LKJCholesky(3, torch.tensor([0.5, 2.0]))
    expected = [D.LKJCholesky(3, c).log_prob(lower).item() for c in (0.5, 2.0)]
    assert d.log_prob(lower).tolist() == pytest.approx(expected) and expected[1] == pytest.approx(-1.7312, abs=1e-4)
    torch.manual_seed(0)
    drawn = D.LKJCholesky(3, 2.0).sample((4000,))
    assert drawn.shape == (4000, 3, 3) and torch.allclose((drawn @ drawn.mT).diagonal(dim1=-1, dim2=-2), torch.ones(3), atol=1e-5)
    r = (drawn @ drawn.mT)[:, 1, 0]  # (r + 1) / 2 has a Beta(c + 1/2, c + 1/2) distribution: variance of r is 1 / (2 c + 2)
    assert r.var().item() == pytest.approx(1 / 6, abs=0.02) and abs(r.mean().item()) < 0.03
    assert d.expand((3, 2)).sample().shape == (3, 2, 3, 3)
    with pytest.raises(ValueError, match="greater than or equal to 2"):
        D.LKJCholesky(1)


def test_mappings_by_the_identity_of_tensors_forget_the_dead() -> None:
    a, b = torch.ones(2), torch.ones(2)
    mapping: Any = WeakIdKeyDictionary({a: 1})
    mapping[b] = 2
    ref = TensorWeakRef(b)
    assert len(mapping) == 2 and mapping[a] == 1 and b in mapping and ref() is b
    del b
    gc.collect()
    assert list(mapping.values()) == [1] and ref() is None and torch.ones(2) not in mapping
    assert mapping.copy() == mapping and (mapping | {a: 3})[a] == 3


def test_names_at_the_top_level() -> None:
    assert torch.newaxis is None and torch.GradScaler is torch.amp.GradScaler and torch.UntypedStorage is storage.UntypedStorage
    x = torch.ones(2)
    assert torch.is_storage(x.untyped_storage()) and torch.is_storage(x.storage()) and not torch.is_storage(x)


def test_recurrent_functions_are_their_modules() -> None:
    torch.manual_seed(0)
    lstm, gru = torch.nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), torch.nn.GRU(3, 4, batch_first=True, bias=False)
    x, h, c = torch.randn(5, 2, 3), torch.randn(4, 2, 2), torch.randn(4, 2, 4)
    y, last_h, last_c = torch._VF.lstm(x, (h, c), lstm._flat_weights, True, 2, 0.0, False, True, False)
    expected, (wanted_h, wanted_c) = lstm(x, (h, c))
    assert torch.equal(y, expected) and torch.equal(last_h, wanted_h) and torch.equal(last_c, wanted_c)
    out = torch.gru(x, torch.zeros(1, 5, 4), gru._flat_weights, has_biases=False, num_layers=1, dropout=0.0, train=False,
                    bidirectional=False, batch_first=True)  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(out, gru(x), strict=True))
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    expected, _ = lstm(packed, (h, c))
    data, *_ = torch.lstm(packed.data, packed.batch_sizes, (h, c), lstm._flat_weights, True, 2, 0.0, False, True)
    assert torch.equal(data, expected.data)
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters: 3"):
        torch.gru(x, torch.zeros(1, 2, 4), [*gru._flat_weights, x], False, 1, 0.0, False, False, False)


def test_gradients_of_runs_reach_the_elements_that_made_them() -> None:
    x = torch.tensor([1.0, 3.0, 3.0, 0.0, 2.0, -1.0], requires_grad=True)
    lengths = torch.tensor([3, 0, 3])
    expected = {"sum": [1.0] * 6, "mean": [1 / 3] * 6, "max": [0.0, 0.5, 0.5, 0.0, 1.0, 0.0], "min": [1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
                "prod": [9.0, 3.0, 3.0, -2.0, 0.0, 0.0]}  # fmt: skip
    for reduce, wanted in expected.items():
        y = torch.segment_reduce(x, reduce, lengths=lengths)[::2].sum()
        assert torch.autograd.grad(y, x)[0].tolist() == pytest.approx(wanted)


def test_few_eigenvalues_of_a_pencil() -> None:
    torch.manual_seed(0)
    a = torch.randn(2, 20, 20, dtype=torch.float64)
    a = a @ a.mT
    b = torch.diag(torch.arange(1.0, 21.0, dtype=torch.float64)).expand(2, 20, 20)
    values, vectors = torch.lobpcg(a, k=2, B=b, largest=False)
    assert values.shape == (2, 2) and torch.allclose(a @ vectors, b @ vectors * values[:, None], atol=1e-5)
    root = b.rsqrt().where(b > 0, torch.zeros((), dtype=torch.float64))
    assert torch.allclose(torch.linalg.eigvalsh(root @ a @ root)[:, :2], values)
    assert torch.allclose(torch.lobpcg(a, k=1)[0], torch.linalg.eigvalsh(a)[:, -1:])
    with pytest.raises(NotImplementedError, match="gradients"):
        torch.lobpcg(a.requires_grad_())


def test_storages_are_sequences_of_bytes_and_of_numbers() -> None:
    x = torch.arange(4.0)
    bytes_, numbers = x.untyped_storage(), x.storage()
    assert len(bytes_) == 16 and len(numbers) == numbers.size() == 4 and numbers[2] == 2.0 and list(bytes_)[4:8] == [0, 0, 128, 63]
    bytes_[4:8] = 0
    bytes_[:4].copy_(bytes_[12:])
    assert x.tolist() == [3.0, 0.0, 2.0, 3.0] and x._version > 0
    bytes_.resize_(4)
    assert (bytes_.nbytes(), numbers.size()) == (4, 1)
    bytes_.resize_(16)
    assert numbers.tolist() == [3.0, 0.0, 2.0, 3.0]
    with pytest.raises(NotImplementedError, match="growing beyond the 16 bytes"):
        bytes_.resize_(17)
    with pytest.raises(RuntimeError, match="not resizable"):
        bytes_[:4].resize_(2)
    assert numbers.long().tolist() == [3, 0, 2, 3] and numbers.double().type() == "torch.DoubleStorage"
