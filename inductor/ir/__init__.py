"""The loop IR: `definitions` (start there) with `values`, `sizes` (and layouts), `inline`."""
