"""The loop IR: `definitions` (start there), `sizes`, `substitute`, `inline`."""
