"""Python's semantics over captured values: `operators`, `attributes`, `calls`, `exceptions`, `formatting`, `finalizers`."""
