"""`torch._inductor.config`, `torch._functorch.config`, `torch.compiler.config`: the effects of their settings."""
from __future__ import annotations

from typing import Any

import pytest

import eager

torch: Any = eager


def test_an_unknown_setting_names_the_nearest() -> None:
    for config, name, near in ((torch._inductor.config, "max_autotun", "max_autotune"),
                               (torch._dynamo.config, "cache_size_limt", "cache_size_limit"),
                               (torch._functorch.config, "activation_memory_budge", "activation_memory_budget")):  # fmt: skip
        for call in (lambda c, n: setattr(c, n, True), getattr):
            with pytest.raises(AttributeError, match=rf"torch\._\w+\.config has no setting '{name}'; did you mean '{near}'\?"):
                call(config, name)
    with pytest.raises(AttributeError, match=r"torch\._inductor\.config\.triton has no setting"):
        torch._inductor.config.triton.cudagraph = True


def test_settings_of_functorch_act_or_are_refused() -> None:
    config = torch._functorch.config
    with config.patch(enable_autograd_cache=False):
        assert torch._inductor.config.fx_graph_cache is False
    assert torch._inductor.config.fx_graph_cache is not False or not config.enable_autograd_cache
    with pytest.raises(NotImplementedError, match=r"activation_memory_budget=0\.5: a minimum cut selects the values"):
        config.activation_memory_budget = 0.5
    config.activation_memory_budget = 1.0


REFUSED = {"cpp.enable_kernel_profile": True, "cpp.simdlen": 256, "emulate_precision_casts": True, "worker_start_method": "spawn",
           "keep_output_stride": False, "freezing": True}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), REFUSED.items())
def test_settings_of_inductor_without_an_effect_are_refused(name: str, value: Any) -> None:
    patch = torch._inductor.config.patch({name: value})
    with pytest.raises(NotImplementedError, match=rf"torch\._inductor\.config\.{name}={value!r}"), patch:
        pass


def test_compiler_config_has_its_own_names() -> None:
    with torch.compiler.config.patch(force_disable_caches=True):
        assert torch._inductor.config.fx_graph_cache is False
    with pytest.raises(NotImplementedError, match="job_id='x'"):
        torch.compiler.config.job_id = "x"
