"""Compiled variants of user code: `region` captures, guards and installs variants (start there), `module` wraps modules,
`export` returns a function as one graph with its guards.
"""
