"""Repositories for a Hub to serve: the same images in a LitData chunk, a WebDataset tar and a Parquet file.

They are made once, as the datasets in ``datasets.py`` are.
"""

from __future__ import annotations

import io
import random
import shutil
import struct
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import datasets, tables
from benchmarks.datasets import Packing, image, label, made

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# As in datasets.py: to be counted up when what is made comes out otherwise than before.
_VERSION = 1

_OWNER = "bench"
# Images of about 100 KB.
_GRAIN = 130
_BLOCK = 1 << 20


class Shard(NamedTuple):
    """A shard that is a repository.

    Attributes:
        title: what the table calls it.
        file: its path in the repository.
        image: what the image of a record is called in a mount.
    """

    title: str
    name: str
    file: str
    image: Callable[[int], str]

    @property
    def repository(self) -> str:
        return f"{_OWNER}/{self.name}"

    @property
    def path(self) -> str:
        """What HfFileSystem calls it."""
        return f"datasets/{self.repository}/{self.file}"

    @property
    def folder(self) -> str:
        """Its own name in a mount."""
        return Path(self.file).stem


LITDATA = Shard("LitData chunk", "litdata", "chunk-0-0.bin", lambda _: "image.jpg")
TAR = Shard("WebDataset tar", "tar", "train-000000.tar", "{:06d}.jpg".format)
PARQUET = Shard("Parquet", "parquet", "data/train-00000-of-00001.parquet", lambda _: "image.jpg")
FILE = Shard("file", "file", "whole.bin", str)


class Span(NamedTuple):
    """Bytes of a file from *start* up to *stop*."""

    start: int
    stop: int


def repositories(work: Path, records: int, python: str, version: str) -> Path:
    """A folder of repositories with *records* images each; *python* has Hugging Face's library in this version.

    ``bench/litdata``, ``bench/tar`` and ``bench/parquet`` hold one shard each, ``bench/file`` a file of as many bytes
    that is no shard, for what it costs to read one from its first byte to its last.
    """

    def make(folder: Path) -> None:
        for shard in (TAR, PARQUET, FILE):
            (folder / shard.repository / shard.file).parent.mkdir(parents=True)
        endless = records << 20
        chunk = datasets.images(folder, Packing.PLAIN, records, endless, _GRAIN)
        chunk.rename(folder / LITDATA.repository)
        _write_tar(folder / TAR.repository / TAR.file, records)
        size = (folder / TAR.repository / TAR.file).stat().st_size
        _write_file(folder / FILE.repository / FILE.file, size)
        table = tables.images_by_datasets(folder, records, python, version, _GRAIN)
        (table / "images.parquet").rename(folder / PARQUET.repository / PARQUET.file)
        for rest in set(folder.iterdir()) - {folder / _OWNER}:
            shutil.rmtree(rest)

    return made(work / f"repositories-{version}-{records}-v{_VERSION}", make)


def _write_tar(path: Path, records: int) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(records):
            for suffix, content in (
                ("jpg", image(number, _GRAIN)),
                ("cls", str(label(number)).encode()),
            ):
                member = tarfile.TarInfo(f"{number:06d}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def _write_file(path: Path, size: int) -> None:
    chance = random.Random(0)
    with path.open("wb") as file:
        for start in range(0, size, _BLOCK):
            file.write(chance.randbytes(min(_BLOCK, size - start)))


def images_in_chunk(chunk: Path, numbers: Sequence[int]) -> list[Span]:
    """Where in a LitData chunk the images of these records are: each the first of the three fields of its record."""
    spans = []
    with chunk.open("rb") as file:
        for number in numbers:
            file.seek(4 * (1 + number))
            (record,) = struct.unpack("<I", file.read(4))
            file.seek(record)
            (size, _, _) = lengths = struct.unpack("<3I", file.read(12))
            start = record + 4 * len(lengths)
            spans.append(Span(start, start + size))
    return spans
