"""numpy under capture: `table` finds a function, `rules` says how tensors compute it, `calls` records the call."""
