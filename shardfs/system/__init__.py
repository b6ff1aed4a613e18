"""What the machine says: whether it may mount, and what is mounted."""
