"""The result of a compilation on disk: `format` describes it, `cache` stores and finds it."""
