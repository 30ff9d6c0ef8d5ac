"""The rest of `torch.fx`: symbolic tracing by proxies, transformers, and pattern replacement.

The compiler does not use this folder. Under the alias its modules are `torch.fx.proxy`, `torch.fx.experimental` and so on.
"""
