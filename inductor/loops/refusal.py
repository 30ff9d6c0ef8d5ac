"""Why a step of a schedule cannot be done."""

from __future__ import annotations

from typing import NamedTuple

from inductor.loops.steps import Step


class Refusal(NamedTuple):
    """A step that cannot be done, and why."""

    step: Step
    reason: str

    def __str__(self) -> str:
        return f"{self.step}: {self.reason}"


class Refused(Exception):
    """Carries a reason from inside a step to `inductor.loops.apply.apply`."""
