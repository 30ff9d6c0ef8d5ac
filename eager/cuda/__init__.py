"""`torch.cuda`: devices, memory, seeds and streams. Every query works without a GPU."""
from __future__ import annotations

from eager.cuda import graphs, memory, random, streams
from eager.cuda.backend import (
    DeviceProperties,
    current_device,
    device,
    device_count,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
    why_not_available,
)
from eager.cuda.graphs import CUDAGraph, graph, graph_pool_handle, make_graphed_callables
from eager.cuda.memory import (
    OutOfMemoryError,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)
from eager.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from eager.cuda.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
)
from eager.random import Generator, cuda_generator

_CudaDeviceProperties = DeviceProperties  # torch's name for the class


def __getattr__(name: str) -> tuple[Generator, ...]:
    if name == "default_generators":  # one per device, computed at each access
        return tuple(cuda_generator(i) for i in range(device_count()))
    raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")
