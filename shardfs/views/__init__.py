"""Fields as files: one module a kind of file."""
