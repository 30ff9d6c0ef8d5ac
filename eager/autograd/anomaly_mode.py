"""Anomaly mode: backward names the forward line of a node that fails, and refuses nan."""
from __future__ import annotations

import warnings

from eager.base.flags import check_flags as _check_flags
from eager.tape.state import anomaly

_WARNING = ("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.")


class set_detect_anomaly:  # noqa: N801 - torch's name
    """Switch anomaly mode on or off, at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        _check_flags("set_anomaly_enabled", enabled=mode, check_nan=check_nan)
        self._before = anomaly.enabled, anomaly.check_nan
        anomaly.enabled, anomaly.check_nan = mode, check_nan

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        anomaly.enabled, anomaly.check_nan = self._before


class detect_anomaly:  # noqa: N801 - torch's name
    """Anomaly mode for a block: nodes made in it keep their forward traceback, and backward in it refuses nan."""

    def __init__(self, check_nan: bool = True) -> None:
        _check_flags("set_anomaly_enabled", check_nan=check_nan)
        self.check_nan = check_nan
        warnings.warn(_WARNING, stacklevel=2)

    def __enter__(self) -> None:
        self._before = anomaly.enabled, anomaly.check_nan
        anomaly.enabled, anomaly.check_nan = True, self.check_nan

    def __exit__(self, *exc: object) -> None:
        anomaly.enabled, anomaly.check_nan = self._before


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """`set_detect_anomaly` as a plain function."""
    _check_flags("set_anomaly_enabled", enabled=enabled, check_nan=check_nan)
    anomaly.enabled, anomaly.check_nan = enabled, check_nan


def is_anomaly_enabled() -> bool:
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    return anomaly.check_nan
