"""The catalogue of graph-break causes, and the record of each break.

Owns: the causes (`Cause`), the record of one break (`BreakRecord`), one report for each site, and the per-thread switch that makes
breaks errors. Must not know how a break is executed.
"""

from __future__ import annotations

import linecache
import traceback
from threading import local
from typing import Final

from eager.base import logs
from eager.base.records import dataclass
from eager.base.tracebacks import OURS, owner_of

LOG: Final = logs.artifact("graph_breaks")
DOCS: Final = "TORCH_LOGS.md#"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a graph can end. hint: what the user can do."""

    id: str
    title: str
    hint: str

    @property
    def docs(self) -> str:
        """The anchor in the documentation."""
        return DOCS + self.id


CAUSES: Final[dict[str, Cause]] = {}


def _cause(id_: str, title: str, hint: str) -> Cause:
    CAUSES[id_] = cause = Cause(id_, title, hint)
    return cause


DATA_DEPENDENT_BRANCH: Final = _cause(
    "data-dependent-branch",
    "a branch depends on the value of a tensor",
    "write the choice as tensor code (torch.where), or move the branch out of the compiled function",
)
DATA_DEPENDENT_VALUE: Final = _cause(
    "data-dependent-value",
    "the program reads the value of a tensor as a Python number or array",
    "keep the value a tensor, read it after the compiled function has returned, or set "
    "torch._dynamo.config.capture_scalar_outputs or capture_dynamic_output_shape_ops",
)
UNKNOWN_CALL: Final = _cause(
    "unknown-call",
    "a call cannot be captured",
    "move the call out of the compiled function, or mark the callee with allow_in_graph if it is pure tensor code",
)
DISABLED_CALL: Final = _cause(
    "disabled-call", "a call of a function marked with disable", "remove the mark if the callee can be captured"
)
SKIPPED: Final = _cause("skip-frame", "torch._dynamo.skip_frame() was called", "remove the call")
EXPLICIT: Final = _cause("explicit", "torch._dynamo.graph_break() was called", "remove the call")
AUTOGRAD: Final = _cause(
    "autograd-call",
    "a call into the autograd engine",
    "compile the forward and the loss; backward() then runs the compiled backward graph",
)
GENERATOR: Final = _cause(
    "generator", "a generator cannot be captured at this point", "consume the generator in the function that makes it"
)
OPAQUE_OBJECT: Final = _cause(
    "opaque-object", "an operation on an opaque object cannot be captured", "pass tensors, numbers or containers instead"
)
OPAQUE_ITERATOR: Final = _cause(
    "opaque-iterator", "iteration over an iterator that began outside the capture", "iterate over a list or a range"
)
ATTRIBUTE: Final = _cause(
    "attribute", "an attribute access cannot be captured", "use a plain attribute, or read it outside the compiled function"
)
TENSOR_ATTRIBUTE: Final = _cause(
    "tensor-attribute", "an attribute write on a tensor", "set it outside the compiled function"
)
IMPORT: Final = _cause("import", "an import of a module that is not loaded yet", "import the module at the top of the file")
INSTRUCTION: Final = _cause(
    "instruction", "an instruction cannot be captured", "move this statement out of the compiled function"
)
INLINE_DEPTH: Final = _cause(
    "inline-depth", "calls nested too deep to inline", "raise FRAMEJIT_INLINE_DEPTH, or make the recursion a loop"
)
UNROLL_LIMIT: Final = _cause(
    "unroll-limit", "a loop with too many iterations to unroll", "move the loop out of the compiled function"
)
IDENTITY: Final = _cause(
    "identity", "id() or hash() of a value that exists only in the graph", "avoid identity of intermediate values"
)
MUTATION: Final = _cause(
    "mutation", "a mutation cannot be replayed exactly", "mutate a container made inside the compiled function"
)
FRAME_INTROSPECTION: Final = _cause(
    "frame-introspection", "a call inspects the frame (locals, eval, exec, sys._getframe)", "move the call out of the compiled function"
)
FORCED: Final = _cause("forced", "a break forced by a setting", "unset FRAMEJIT_FORCE_BREAK")
ALIASED_INPUTS: Final = _cause(
    "aliased-inputs",
    "an in-place write to one of several inputs that share memory",
    "clone one of the inputs before the compiled function",
)
SHAPE_RULE: Final = _cause(
    "shape-rule", "the shape rule of an op failed, though the op runs", "report the op: its shape rule is wrong"
)
REFUSAL: Final = _cause(
    "handled-refusal",
    "a `try` holds a write to an input and a call that may raise because of its data (an index, a matrix)",
    "move the call, or the write, out of the compiled function",
)
EXCEPTION: Final = _cause(
    "exception", "an exception state cannot be replayed", "handle the exception outside the compiled function"
)


@dataclass(frozen=True, slots=True)
class BreakRecord:
    """One graph break: its place in the user's code, and its cause.

    stack: (file, line, function) of the inlined frames, outermost first, the breaking one last.
    """

    cause: Cause
    detail: str
    file: str
    line: int
    function: str
    stack: tuple[tuple[str, int, str], ...] = ()

    @property
    def source_line(self) -> str:
        file, line, _ = self._places()[-1]
        return linecache.getline(file, line).strip()

    def user_stack(self) -> list[traceback.FrameSummary]:
        """The user's frames down to the break, outermost first. Without a frame of the user, the last frame of this library."""
        return [traceback.FrameSummary(file, line, function, lookup_line=False) for file, line, function in self._places()]

    def _places(self) -> list[tuple[str, int, str]]:
        places = self.stack or ((self.file, self.line, self.function),)
        theirs = [place for place in places if owner_of(place[0]) != OURS]
        return theirs or [places[-1]]

    def describe(self) -> str:
        """The report as printed under TORCH_LOGS=graph_breaks."""
        *_, (file, line, _) = places = self._places()
        lines = [f"Graph break in user code at {file}:{line}", f"  Reason: {self.cause.title}: {self.detail}"]
        if self.source_line:
            lines.insert(1, f"  {self.source_line}")
        lines.append(f"  Hint: {self.cause.hint}")
        lines.append(f"  Docs: {self.cause.docs} [{self.cause.id}]")
        if len(places) > 1:
            lines.append("  User stack:")
            lines += [f"    {file}:{line} in {function}" for file, line, function in places]
        return "\n".join(lines)


class _Forbidden(local):
    """The setting of `error_on_graph_break` in this thread; None: `fullgraph` decides."""

    value: bool | None = None


FORBIDDEN: Final = _Forbidden()


def forbidding() -> bool | None:
    """The setting of this thread: True, breaks are errors; False, they are not; None, `fullgraph` decides."""
    return FORBIDDEN.value


def forbid(error: bool | None) -> bool | None:
    """Change the setting of this thread; return the old setting. In a captured function, the change applies from the call on."""
    before, FORBIDDEN.value = FORBIDDEN.value, error
    return before


_seen: dict[tuple[str, int, str], object] = {}  # by site and cause: the mark of the first report


def report(record: BreakRecord) -> None:
    """Log `record` once for each site and cause."""
    if not LOG.enabled:
        return
    key = (record.file, record.line, record.cause.id)
    mark = object()
    if _seen.setdefault(key, mark) is mark:
        LOG.log(record.describe())


def forget_sites() -> None:
    """Let every site report again (after `reset()`)."""
    _seen.clear()
