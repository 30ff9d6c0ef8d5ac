"""Selective checkpoints: the results of selected ops are saved in the first run, and not recomputed."""
from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.records import dataclass
from eager.dispatch import calls
from eager.optable.table import Op
from eager.utils._pytree import tree_map_only


class CheckpointPolicy(enum.Enum):
    """The treatment of an op's result: SAVE keeps it, RECOMPUTE drops it.

    MUST binds a compiler too, PREFER does not.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


_KEPT = frozenset({CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE})


@dataclass(frozen=True, slots=True)
class SelectiveCheckpointContext:
    """Context for a policy function: whether this is the recomputation, and in the first run the op's result."""

    is_recompute: bool
    op_output: Any = None


PolicyFn = Callable[..., CheckpointPolicy]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A result of the first run, with its version counter."""

    value: Tensor
    version: int

    def get(self, may_change: bool) -> Tensor:
        if not may_change and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value.detach()


class _Keeping(calls.Mode):
    def __init__(self, policy: PolicyFn, kept: dict[str, deque[Any]]) -> None:
        self.policy = policy
        self.kept = kept

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        result = calls.below(op, args)
        if not op.mutates and _keeps(self.policy, SelectiveCheckpointContext(False, result), op, args):
            self.kept[op.name].append(tree_map_only(Tensor, lambda t: _Kept(t.detach(), t._version), result))
        return result


class _Reusing(calls.Mode):
    def __init__(self, policy: PolicyFn, kept: dict[str, deque[Any]], may_change: bool) -> None:
        self.policy = policy
        self.kept = kept
        self.may_change = may_change

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if op.mutates or not _keeps(self.policy, SelectiveCheckpointContext(True), op, args):
            return calls.below(op, args)
        if not self.kept[op.name]:
            raise RuntimeError(f"checkpoint: no result of {op.name} is kept: either backward runs a second time through a region "
                               "computed under a selective checkpoint, which is not allowed, or the policy answered differently "
                               "in the two runs")  # fmt: skip
        return tree_map_only(_Kept, lambda k: k.get(self.may_change), self.kept[op.name].popleft())


def _keeps(policy: PolicyFn, context: SelectiveCheckpointContext, op: Op, args: tuple[Any, ...]) -> bool:
    answer = policy(context, op, *args)
    if isinstance(answer, bool):
        return answer
    if answer is CheckpointPolicy.MUST_CPU_OFFLOAD:
        raise NotImplementedError("checkpoint: CheckpointPolicy.MUST_CPU_OFFLOAD")
    return answer in _KEPT


def create_selective_checkpoint_contexts(policy_fn_or_list: PolicyFn | Sequence[Op],
                                         allow_cache_entry_mutation: bool = False) -> tuple[calls.Mode, calls.Mode]:  # fmt: skip
    """Contexts of the first run and the recomputation, for `context_fn` of `checkpoint`.

    policy_fn_or_list: the ops whose results to keep, or `policy(context, op, *args) -> CheckpointPolicy`, which
    sees ops below autograd, with all arguments by position. Results are kept for one backward.
    Raises: TypeError for another kind of policy; ValueError for a list entry that is not an op.
    """
    if isinstance(policy_fn_or_list, (list, tuple)):
        for op in policy_fn_or_list:
            if not isinstance(op, Op):
                raise ValueError(f"Expected op in `op_list` to be an op of torch.ops but got: {op} of type {type(op)}.")
        chosen = {op.name for op in policy_fn_or_list}

        def policy(ctx: Any, op: Op, *args: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op.name in chosen else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[str, deque[Any]] = defaultdict(deque)
    return _Keeping(policy, kept), _Reusing(policy, kept, allow_cache_entry_mutation)
