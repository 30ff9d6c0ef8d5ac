"""Programs that mutate and alias, each with the inputs it is run on. Plain functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eager
from eager import Tensor

Program = tuple[Callable[..., Any], Callable[[], list[Tensor]]]
PROGRAMS: dict[str, Program] = {}


def program(make: Callable[[], list[Tensor]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        assert fn.__name__ not in PROGRAMS
        PROGRAMS[fn.__name__] = (fn, make)
        return fn

    return add


def matrix() -> list[Tensor]:
    eager.manual_seed(3)
    return [eager.randn(3, 4)]


def two() -> list[Tensor]:
    eager.manual_seed(4)
    return [eager.randn(3, 4), eager.randn(3, 4)]


def transposed() -> list[Tensor]:
    eager.manual_seed(5)
    return [eager.randn(4, 3).t(), eager.randn(4)]


def gapped() -> list[Tensor]:
    eager.manual_seed(6)
    return [eager.randn(3, 8)[:, 1:5]]


def cube() -> list[Tensor]:
    eager.manual_seed(7)
    return [eager.randn(2, 3, 4), eager.randn(3, 4)]


def overlapping() -> list[Tensor]:
    eager.manual_seed(8)
    x = eager.randn(10)
    return [x[:6], x[4:]]


def window() -> list[Tensor]:
    eager.manual_seed(9)
    x = eager.randn(4, 6)
    return [x[1:], x.t()[:, :2]]


def same() -> list[Tensor]:
    eager.manual_seed(10)
    x = eager.randn(5)
    return [x, x]


def integers() -> list[Tensor]:
    return [eager.arange(6).reshape(2, 3), eager.tensor([0, 2])]


# ---- writes to intermediates ----
@program(matrix)
def inplace_on_an_intermediate(x):
    y = x * 2
    y.add_(1)
    return y


@program(matrix)
def inplace_through_a_transpose(x):
    y = x + 0
    y.t().mul_(3)
    return y


@program(matrix)
def view_made_before_the_write_sees_it(x):
    y = x + 0
    v = y.view(-1)
    y.mul_(2)
    return v + 1


@program(matrix)
def base_sees_writes_through_views_of_views(x):
    y = x + 0
    y.view(2, 6)[0][2:4].fill_(7)
    return y


@program(matrix)
def two_views_write_by_turns(x):
    y = x + 0
    a, b = y[0], y[:, 1]
    a.add_(1)
    b.mul_(a[0])
    a.sub_(b.sum())
    return y, a + b[0]


@program(two)
def setitem_forms(x, y):
    z = x + 0
    z[0] = 1.5
    z[1, 2:] = y[0, 2:]
    z[:, 0] += 3
    z[-1] = z[0] * 2
    return z


@program(two)
def masked_and_indexed_writes(x, y):
    z = x + 0
    z[z > 0] = 0.5
    z[eager.tensor([0, 2]), 1] = y[0, :2]
    return z.masked_fill_(y < 0, 9.0)


@program(matrix)
def diagonal_write(x):
    y = x + 0
    y.diagonal().zero_()
    return y


@program(matrix)
def strided_write(x):
    y = x + 0
    y.as_strided((2, 2), (5, 1), 1).mul_(10)
    return y, y.as_strided((3,), (4,), 0)


@program(matrix)
def squeezed_and_unsqueezed_writes(x):
    y = x.unsqueeze(1) + 0
    y.squeeze(1).add_(1)
    y.unsqueeze(0)[0, 1].mul_(2)
    return y


@program(cube)
def expanded_source_is_copied(x, y):
    z = eager.zeros(2, 3, 4)
    z.copy_(y)
    z[1].copy_(x[0])
    return z


@program(matrix)
def write_of_another_dtype(x):
    y = (x * 10).long()
    y.add_(1)
    z = eager.zeros(3, 4)
    z.copy_(y)
    return y, z


@program(matrix)
def copies_are_apart(x):
    y = x * 2
    z = eager.empty(3, 4)
    z.copy_(y)
    w = y.clone()
    y.add_(1)
    return y, z, w


@program(matrix)
def detached_alias_is_written(x):
    y = x * 2
    y.detach().add_(1)
    return y


@program(matrix)
def chunked_writes(x):
    y = x + 0
    for i, part in enumerate(y.chunk(2, 1)):
        part.mul_(i + 2)
    return y


# ---- writes to inputs ----
@program(matrix)
def input_written(x):
    x.add_(1)
    return x * 2


@program(matrix)
def input_written_and_returned(x):
    x.mul_(2)
    return x


@program(matrix)
def input_written_through_a_view(x):
    x[0].add_(5)
    x.t()[1].zero_()
    return x.sum()


@program(transposed)
def transposed_input_written(x, y):
    x.mul_(y)
    return x + y


@program(gapped)
def gapped_input_written(x):
    x.exp_()
    x[0] = 0
    return x.view(-1) if x.is_contiguous() else x + 1


@program(two)
def one_input_copied_into_another(x, y):
    x.copy_(y)
    return x, y + x


@program(two)
def inputs_swapped(x, y):
    t = x.clone()
    x.copy_(y)
    y.copy_(t)
    return x - y


@program(matrix)
def input_transposed_into_itself(x):
    s = x[:, :3]
    s.copy_(s.t())
    return s.sum()


@program(matrix)
def written_twice(x):
    x.add_(1)
    y = x * x
    x.sub_(y)
    return y


@program(two)
def view_of_a_written_input(x, y):
    v = x.view(-1)
    x.add_(y)
    return v, x[1:], x.t()


@program(integers)
def integer_input_written(x, i):
    x[:, i] = 0
    x += 1
    return x.sum(), i


# ---- results that alias ----
@program(two)
def inputs_returned_as_they_are(x, y):
    return y, x, y


@program(matrix)
def views_of_an_input(x):
    return x.t(), x.view(-1), x[1], x.detach(), x.expand(2, 3, 4)


@program(matrix)
def views_of_an_intermediate(x):
    y = x + 1
    return y, y.t(), y[0], y.view(-1)


@program(matrix)
def views_without_their_base(x):
    y = x + 1
    return y[0], y[1:], y.t()


@program(matrix)
def one_dense_view_of_an_intermediate(x):
    return (x + 1).t()


@program(matrix)
def one_gapped_view_of_an_intermediate(x):
    return (x + 1)[:, 1:3]


@program(matrix)
def expanded_result(x):
    return x.sum(0).expand(5, 4)


@program(matrix)
def equal_results_are_two_tensors(x):
    return x + 1, x + 1


@program(matrix)
def the_same_result_twice(x):
    y = x + 1
    return y, y


@program(matrix)
def detached_result(x):
    y = x * 3
    return y, y.detach()


@program(matrix)
def new_constants(x):
    return eager.ones(2), eager.tensor([1.0, 2.0]), x + eager.tensor([1.0, 2.0, 3.0, 4.0])


@program(matrix)
def written_constant(x):
    c = eager.tensor([1.0, 2.0, 3.0, 4.0])
    c[0] = 10
    c += x[0]
    return c


@program(matrix)
def nothing_returned_but_a_write(x):
    x.zero_()
    return ()


@program(matrix)
def copy_of_an_input(x):
    return x.clone(), x.contiguous()


@program(gapped)
def strided_view_of_an_offset_input(x):
    return x[1:].as_strided((2, 2), (8, 1)) * 2, x.as_strided((2,), (1,))


# ---- inputs that share memory ----
@program(overlapping)
def overlapping_inputs_one_written(x, y):
    x.add_(1)
    return y * 2


@program(overlapping)
def overlapping_inputs_both_written(x, y):
    x.mul_(2)
    y.add_(x[0])
    return x, y[:3]


@program(overlapping)
def overlapping_inputs_only_read(x, y):
    return x.sum() + y.sum(), x[1:]


@program(window)
def two_views_of_one_matrix(x, y):
    x[0] = 0
    y.mul_(2)
    return x.sum(), y, x.t()


@program(same)
def one_tensor_given_twice(x, y):
    x.add_(1)
    return y * 2, y


# ---- grad mode ----
@program(matrix)
def no_grad_region(x):
    y = x * 2
    with eager.no_grad():
        z = y * 3
        w = x.view(-1)
    return y, z, w, y * z


@program(two)
def buffer_updated_without_grad(x, b):
    with eager.no_grad():
        b.mul_(0.9).add_(x.detach() * 0.1)
    return x * b.detach()


@program(two)
def written_with_a_value_that_wants_grad(x, b):
    b.add_(x)
    return b * 2


@program(matrix)
def relu_in_place(x):
    y = x + 0
    y.relu_()
    return y * y
