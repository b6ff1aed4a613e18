"""Which process is which: numbers of processes are used again."""

from __future__ import annotations

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# proc_pid_stat(5), counted behind the name: the state, and when it began in clock ticks since the machine did.
_STATE, _START = 0, 19


def birth(pid: int) -> str:
    """What tells process *pid* from all others that have or had its number; "" where it has ended."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
        boot = _BOOT_ID.read_text().strip()
    except OSError:
        return ""
    # The name may hold anything. A zombie waits for a parent that never asks, as there are in containers.
    fields = line.rpartition(b")")[2].split()
    return "" if fields[_STATE] in (b"Z", b"X") else f"{boot} {fields[_START].decode()}"
