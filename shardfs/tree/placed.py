"""Services for what lies in a folder of the source: what they report says in which."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardfs.errors import ShardfsError
    from shardfs.model import Services


class PlacedServices:
    """Those of the whole source, for one folder."""

    def __init__(self, services: Services, folder: str) -> None:
        self.options, self.parameters = services.options, services.parameters
        self.inflate, self.unpack, self.derive = services.inflate, services.unpack, services.derive
        self.remember = services.remember
        self._report, self._folder = services.report, folder

    def report(self, error: ShardfsError, /) -> None:
        if self._folder:
            error.at(self._folder)
        self._report(error)
