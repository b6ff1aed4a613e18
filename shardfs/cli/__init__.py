"""The command line: arguments, messages, and the life of a mount from the request to its end."""
