"""torch.fx.experimental: the parts that libraries ask for."""
