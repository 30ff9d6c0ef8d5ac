"""The loop IR: `definitions` (start there), `values`, and `sizes` with layouts."""
