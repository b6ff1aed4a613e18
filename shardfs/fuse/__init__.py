"""The tree as a mounted file system. Nothing else in shardfs knows pyfuse3 and trio."""

from shardfs.fuse.session import mount

__all__ = ["mount"]
