"""Any sharded dataset as a read-only folder tree."""
