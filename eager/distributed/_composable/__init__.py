"""The former package of `fully_shard`."""
