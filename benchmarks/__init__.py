"""Measurements of mounts, each beside what it is to be compared with."""
