"""The versions of all that a fault may lie in, for bug reports."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform

# By name, and without importing them: the report must come even where one of them is broken.
_PACKAGES = [
    "pyfuse3",
    "trio",
    "pyarrow",
    "zstandard",
    "cachetools",
    "urllib3",
    "cryptography",
    "fsspec",
]


def report() -> str:
    """One line each."""
    lines = [f"shardfs {_package('shardfs')}", f"Python {platform.python_version()}"]
    lines += [f"{name} {_package(name)}" for name in _PACKAGES]
    lines += [f"libfuse3 {_libfuse()}", f"{platform.system()} {platform.release()}"]
    return "\n".join(lines)


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _libfuse() -> str:
    for name in ("libfuse3.so.4", "libfuse3.so.3"):
        try:
            version = ctypes.CDLL(name).fuse_pkgversion
        except (OSError, AttributeError):
            continue
        version.restype = ctypes.c_char_p
        return str(version().decode())
    return "not installed"
