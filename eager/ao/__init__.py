"""torch.ao: of quantisation only the stubs with which a model marks quantised regions."""
