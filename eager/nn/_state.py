"""The state layer of Module: state_dict and load_state_dict, with torch's keys, metadata and error texts."""
from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base.hooks import RemovableHandle
from eager.nn._tree import TreeModule
from eager.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """Result of `load_state_dict`: the missing and the unexpected keys."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class StatefulModule(TreeModule):
    """Adds state_dict, load_state_dict and their hooks."""

    _state_dict_hooks: dict[int, Callable[..., Any]]
    _state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: dict[int, Callable[..., Any]]

    # ---- extra state ----

    def get_extra_state(self) -> Any:
        """State besides parameters and buffers. A subclass overrides it together with `set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _has_extra(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StatefulModule, method)

    # ---- writing ----

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own parameters and buffers into `destination`; subclasses may extend it."""
        for name, p in self._parameters.items():
            if p is not None:
                destination[prefix + name] = p if keep_vars or is_lazy(p) else p.detach()
        for name, b in self._buffers.items():
            if b is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = b if keep_vars or is_lazy(b) else b.detach()
        if self._has_extra("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers of the tree by dotted name, sharing the module's memory.

        destination: an existing dict to fill. prefix: prepended to each key.
        keep_vars: return the tensors themselves instead of detached aliases.
        Raises: RuntimeError if a post-hook returns a value.
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                          FutureWarning, stacklevel=2)  # fmt: skip
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                if result is not None:
                    destination = result
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    # ---- reading ----

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy a state into this module's parameters and buffers.

        strict: require the keys to match exactly. assign: store the given tensors instead of copying their values.
        Returns: the missing and unexpected keys.
        Raises: TypeError if state_dict is not a mapping; RuntimeError that lists every mismatch of keys (strict) and shapes.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata

        def load(module: Any, local_state: Any, prefix: str) -> None:
            local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(child, {k: v for k, v in local_state.items() if k.startswith(child_prefix)}, child_prefix)
            for hook in module._load_state_dict_post_hooks.values():
                out = hook(module, _IncompatibleKeys(missing, unexpected))
                if out is not None:
                    raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                                       "return new values, if incompatible_keys need to be modified, it should be done "
                                       "inplace.")  # fmt: skip

        load(self, state, "")
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):  # each line is inserted before the existing ones
                if keys:
                    quoted = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {quoted}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:  # fmt: skip
        """Load this module's own entries. A subclass may extend it, for example to read older versions."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        persistent = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        local = {n: t for n, t in (*self._parameters.items(), *persistent.items()) if t is not None}
        for name, target in local.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, key, target, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_extra("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head = key[len(prefix) :].split(".", 1)
                    known = head[0] in self._modules if len(head) > 1 else head[0] in local
                    if not known:
                        unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, target: Tensor, given: Any, assign: bool, errors: list[str]) -> None:
        if not isinstance(given, Tensor):
            errors.append(f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                          f"checkpoint but received {type(given)}")  # fmt: skip
            return
        lazy = is_lazy(target)
        if not lazy and target.ndim == 0 and tuple(given.shape) == (1,):
            given = given[0]  # torch before 0.4 saved scalars with shape (1,)
        if not lazy and tuple(given.shape) != tuple(target.shape):
            errors.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                          f"current model is {target.shape}.")  # fmt: skip
            return
        if target.device.type == "meta" and given.device.type != "meta" and not assign:
            warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
                          "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
                          "corresponding key in the module instead of performing an in place copy?)", stacklevel=5)  # fmt: skip
            return
        before = _native.set_grad_enabled(False)
        try:
            if assign:
                if isinstance(target, Parameter):
                    given = Parameter(given, requires_grad=target.requires_grad) if not isinstance(given, Parameter) else (
                        given.requires_grad_(target.requires_grad))  # fmt: skip
                setattr(self, name, given)
            else:
                if lazy:
                    target.materialize(given.shape)
                target.copy_(given)
        except (RuntimeError, TypeError, ValueError) as e:
            errors.append(f'While copying the parameter named "{key}", whose dimensions in the model are {target.size()} and '
                          f"whose dimensions in the checkpoint are {given.size()}, an exception occurred : {e.args}.")  # fmt: skip
        finally:
            _native.set_grad_enabled(before)

    # ---- hooks ----

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after collection; a result other than None replaces the state."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously "
                               "registered via register_state_dict_post_hook")  # fmt: skip
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the state is collected; the hook returns None."""
        hook._from_public_api = True
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the state is collected."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = functools.partial(hook, self) if with_module else hook
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; the hook may edit the lists in place."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle
