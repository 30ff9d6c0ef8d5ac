"""`torch.fx.passes`."""
