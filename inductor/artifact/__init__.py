"""The result of a compilation on disk: `format` defines it, `cache` stores and finds it, `readers` protects entries in use,
`bundle` moves entries between machines, `inventory` lists and verifies them.
"""
