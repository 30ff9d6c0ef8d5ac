"""The public functions: `compile` and its companions; `checkpoints` for activation checkpointing."""
