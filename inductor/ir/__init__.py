"""The loop IR: `definitions` (start there) with `values` and `layout`, `sizes`, `inline`."""
