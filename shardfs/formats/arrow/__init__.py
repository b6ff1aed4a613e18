"""Arrow IPC files, and what `datasets` saves and caches in them."""
