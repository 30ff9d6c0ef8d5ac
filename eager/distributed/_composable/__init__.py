"""The former place of `fully_shard`."""
