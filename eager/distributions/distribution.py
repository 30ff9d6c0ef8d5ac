"""Distribution: the base class. Shapes, checks of arguments and samples, and the methods that subclasses override."""
from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from eager._tensor.tensor import Size, Tensor
from eager.autograd.grad_mode import no_grad
from eager.distributions import constraints
from eager.distributions.utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of distributions. A sample has shape sample_shape + batch_shape + event_shape.

    batch_shape: independent distributions with separate parameters. event_shape: one draw from one of them.
    validate_args: check parameters now and samples in `log_prob`; None selects the default (on).
    Raises: ValueError for parameters outside `arg_constraints`.
    """

    if TYPE_CHECKING:  # read-only, so that a subclass may override either attribute with a property

        @property
        def has_rsample(self) -> bool: ...
        @property
        def has_enumerate_support(self) -> bool: ...
    else:
        has_rsample = has_enumerate_support = False

    _validate_args = __debug__
    arg_constraints: ClassVar[Any] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments by default."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: got {value!r}; allowed: True, False")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self) -> None:
        try:
            found = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                          "distribution with `validate_args=False` to turn off validation.", stacklevel=4)  # fmt: skip
            return
        for name, constraint in found.items():
            if constraints.is_dependent(constraint):
                continue  # cannot be determined before the instance is complete
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # the alternative parametrisation was given
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                    f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    # ---- shapes ----

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw from one distribution."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """A distribution with parameters expanded to `batch_shape`, over the same memory."""
        raise NotImplementedError(f"{type(self).__name__}.expand")

    def _get_checked_instance(self, cls: type[Distribution], _instance: Any = None) -> Any:
        """An empty instance to fill in `expand`.

        Raises: NotImplementedError for a subclass that overrides only __init__.
        """
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                                      "define a custom .expand() method.")  # fmt: skip
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls: type, batch_shape: Any, names: tuple[str, ...], _instance: Any, event_shape: Any = ()) -> Any:
        """The usual `expand`: expands the named attributes that are already computed, without checking them again."""
        new = self._get_checked_instance(cls, _instance)
        batch_shape = Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                value = self.__dict__[name]
                event_ndim = len(value.shape) - len(self._batch_shape)
                new.__dict__[name] = value.expand(tuple(batch_shape) + tuple(value.shape[value.ndim - event_ndim :] if event_ndim else ()))
        Distribution.__init__(new, batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of a sample: sample_shape + batch_shape + event_shape."""
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    # ---- support and moments ----

    @property
    def support(self) -> Any:
        """The constraint that every sample satisfies."""
        raise NotImplementedError(f"{type(self).__name__}.support")

    @property
    def mean(self) -> Tensor:
        """The mean, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__}.mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each element, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__}.variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each element, of shape batch_shape + event_shape."""
        return self.variance.sqrt()

    # ---- sampling ----

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws without gradients. Result: sample_shape + batch_shape + event_shape."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Reparametrised draws, differentiable in the parameters; defined if `has_rsample`.

        Result: the shape of `sample`.
        """
        raise NotImplementedError(f"{type(self).__name__}.rsample")

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`. Deprecated, as in torch."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dim; defined if `has_enumerate_support`.

        Result: (n,) + batch_shape + event_shape, or with expand=False the batch dims have size 1.
        """
        raise NotImplementedError(f"{type(self).__name__}.enumerate_support")

    # ---- densities ----

    def log_prob(self, value: Tensor) -> Tensor:
        """The log of the density or probability of `value`. Result: sample_shape + batch_shape.

        value: sample_shape + batch_shape + event_shape. Raises: ValueError for a value outside the support, if checked.
        """
        raise NotImplementedError(f"{type(self).__name__}.log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The cumulative distribution function at `value`.

        Raises: ValueError for a value outside the support, if checked.
        """
        raise NotImplementedError(f"{type(self).__name__}.cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of the cumulative distribution function at the probabilities `value`."""
        raise NotImplementedError(f"{type(self).__name__}.icdf")

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape batch_shape."""
        raise NotImplementedError(f"{type(self).__name__}.entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy, of shape batch_shape."""
        return self.entropy().exp()

    # ---- checks ----

    def _validate_sample(self, value: Any) -> None:
        """Raises: ValueError for a value of the wrong type or shape, or outside the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.ndim - len(self._event_shape)
        if tuple(value.shape[start:]) != tuple(self._event_shape):
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        expected = tuple(self._batch_shape) + tuple(self._event_shape)
        for i, j in zip(reversed(tuple(value.shape)), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(expected)}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                          "distribution with `validate_args=False` to turn off validation.", stacklevel=3)  # fmt: skip
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = [f"{n}: {self.__dict__[n] if self.__dict__[n].numel() == 1 else self.__dict__[n].size()}" for n in names]
        return f"{type(self).__name__}({', '.join(shown)})"


LOG_2PI = math.log(2 * math.pi)
