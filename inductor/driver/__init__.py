"""The pipeline: `backend` is the entry (start there), `compile` runs the stages, `autotune` measures variants."""
