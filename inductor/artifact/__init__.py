"""The result of a compilation on disk: `format` defines it, `cache` stores and finds it."""
