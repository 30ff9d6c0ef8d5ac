"""The modes of a captured program: gradients, inference, autocast, and regions that forbid uncaptured calls of compiled
functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dynamo.report import causes
from dynamo.values.protocols import Machine
from eager import _native as eager_native
from eager.base import thread_state
from fxir.ir.node import NodeInfo


class Modes:
    """Owns the modes of the captured program at the captured instruction, and the modes at the beginning.

    grad: gradients are recorded. autocast: number of the settings. forbidden: calls of compiled functions that are not
    captured raise. switches_inference: the program switches inference mode. ambient: the thread's state word at the
    beginning.
    """

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.grad = self.initial_grad = eager_native.grad_enabled()
        self.inference = self.initial_inference = eager_native.inference_mode()
        self.autocast = self.initial_autocast = thread_state.autocast_number()
        self.forbidden = self.initial_forbidden = causes.FORBIDDEN.value
        self.switches_inference = False
        self.ambient = thread_state.word()

    def set_grad(self, on: bool) -> bool:
        """Switch the recording of gradients; return the former setting."""
        before = self.grad
        self.cap.effects.change(None)
        node = self.cap.graphs.graph.call_function(eager_native.set_grad_enabled, (on,), info=NodeInfo(None, self.cap.origin))
        self.cap.recorder.effect_nodes.add(node)
        eager_native.set_grad_enabled(on)
        self.grad = on
        return before

    def set_inference(self, on: bool) -> bool:
        """Switch inference mode; return the former setting.

        The graph runs outside of the mode; each output becomes an inference tensor if its fake is one.
        """
        before = self.inference
        self.cap.effects.change(None)
        self.cap.graphs.refuse_later("switches inference mode")
        self.switches_inference = self.switches_inference or on != before
        eager_native.set_inference_mode(on)
        self.inference = on
        return before

    def switch_autocast(self, number: int) -> int:
        """Open or close a block of autocast; return the number of the former settings."""
        before = self.autocast
        self.cap.effects.change(None)
        node = self.cap.graphs.graph.call_function(thread_state.switch_autocast, (number,), info=NodeInfo(None, self.cap.origin))
        self.cap.recorder.effect_nodes.add(node)
        thread_state.switch_autocast(number)
        self.autocast = number
        return before

    @contextmanager
    def entered(self, grad: bool, autocast: int | None = None) -> Iterator[None]:
        """A context for code that runs with other modes, in the capture and in the thread.

        autocast: None for the present settings.
        """
        before = self.grad, self.autocast
        self._enter(grad, self.autocast if autocast is None else autocast)
        try:
            yield
        finally:
            self._enter(*before)

    def _enter(self, grad: bool, autocast: int) -> None:
        self.grad, self.autocast = grad, autocast
        eager_native.set_grad_enabled(grad)
        thread_state.switch_autocast(autocast)

    def leave(self) -> None:
        """Restore the modes of the thread at the beginning of the capture."""
        eager_native.set_grad_enabled(self.initial_grad)
        eager_native.set_inference_mode(self.initial_inference)
        thread_state.switch_autocast(self.initial_autocast)
