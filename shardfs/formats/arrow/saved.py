"""Datasets that ``save_to_disk`` of Hugging Face's `datasets` wrote: a state.json that names the files in order.

Versions up to 1.14 could save an indices mapping beside them. Source: ``save_to_disk`` and ``load_from_disk`` in
``datasets/arrow_dataset.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardfs.formats.shared.jsontext import checked, member, optional, parse_object
from shardfs.names import safe_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

STATE = "state.json"
INFO = "dataset_info.json"

_FILES, _INDICES = "_data_files", "_indices_data_files"

# Beside the files that count: those of an earlier save or of transforms, and of writers that are at work.
LEFTOVER = re.compile(r"[^/]*\.(?:arrow|lock)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that a state names; *path* is where it lies, None where that is outside."""

    name: str
    path: str | None


@dataclass(frozen=True, slots=True)
class State:
    """Files of rows in order, and of the mapping that orders the rows, if there is one."""

    files: tuple[SavedFile, ...]
    indices: tuple[SavedFile, ...]


def is_state(content: object) -> bool:
    """Whether the JSON of a state.json is that of a saved dataset."""
    return isinstance(content, dict) and _FILES in content


def parse_state(text: bytes) -> State:
    """The state in a state.json. Raises Corrupt."""
    content = parse_object(text)
    return State(
        _files(member(content, _FILES, list)), _files(optional(content, _INDICES, list) or [])
    )


def _files(listed: Sequence[Any]) -> tuple[SavedFile, ...]:
    files = []
    for item in listed:
        name = member(checked(item, dict, "a file"), "filename", str)
        parts = safe_parts(name)
        files.append(SavedFile(name, "/".join(parts) if parts else None))
    return tuple(files)
