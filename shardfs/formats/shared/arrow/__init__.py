"""A reader of Arrow IPC streams and files by offsets, for all formats that hold such."""
