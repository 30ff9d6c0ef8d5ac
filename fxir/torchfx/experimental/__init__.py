"""torch.fx.experimental: the parts that libraries import."""
