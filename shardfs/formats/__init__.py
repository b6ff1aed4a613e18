"""What the bytes are: one module a dataset format."""
