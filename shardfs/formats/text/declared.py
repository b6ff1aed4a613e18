"""What a source declares of how a text file is to be read, value by value: each is checked when it is asked for."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.offsets import MAX_ITEMS

if TYPE_CHECKING:
    from shardfs.model import Parameters

_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 60, 60


class Declared:
    """Parameters with the types that they must have. A null is as good as none."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def __contains__(self, name: str) -> bool:
        """Whether there is anything of that name, be it null."""
        return name in self._parameters.values

    def get(self, name: str) -> object:
        return self._parameters.values.get(name)

    def text(self, name: str, default: str) -> str:
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.wrong(name, "text")
        return value

    def flag(self, name: str, default: bool, /) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def whole(self, name: str) -> int | None:
        """A number of things, None where nothing is declared."""
        value = self.get(name)
        if value is not None and not is_count(value):
            raise self.wrong(name, "a whole number from 0 on")
        return value if isinstance(value, int) else None

    def items(self, name: str) -> list[object] | None:
        """The items of a list, None where nothing is declared."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > MAX_ITEMS:
            raise self.wrong(name, f"a list of at most {MAX_ITEMS} items")
        return value

    def wrong(self, name: str, must: str) -> Corrupt:
        """The failure that a value is not what it must be."""
        return Corrupt(f"{self._at(name)} must be {must}, not {_short.repr(self.get(name))}")

    def unsupported(self, name: str, what: str) -> Unsupported:
        """The failure that a value means what shardfs does not do; *what* says what would help."""
        return Unsupported(
            f"{self._at(name)}: {_short.repr(self.get(name))} is not supported: {what}"
        )

    def _at(self, name: str) -> str:
        return f"{self._parameters.place}: {name}"


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
