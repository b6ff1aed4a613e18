"""The formats, sources and codecs there are: tables of strings, so that nothing is imported until it is chosen."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardfs.errors import MissingPackage

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """One format, source or codec.

    Attributes:
        name: what users and messages call it.
        target: ``module:name`` below the table's package.
        markers: file names of which one makes a folder a candidate (formats).
        suffixes: ends of the file names that are shards (formats), longest match wins, or archives; lower case. Of a
            codec, what its files are usually called.
        begins: a regular expression for the first bytes of its files, where these tell them from all others.
        proof: ``module:name`` of a function that tells its files by their first bytes, where no such expression can.
        parameters: what of the ways to read them a README may declare (formats): `datasets` knows the names.
        lone: suffixes that count only where the user names the file itself, since they are too common (formats).
        schemes: URL schemes (sources).
        sources: a regular expression for the beginning of what it takes, whatever the scheme (sources).
        extra: the extra of shardfs that installs what it needs.
        remote: whether it gives a ``RemoteStore`` (sources).
        text: whether its files are text, so that any text passes for one (formats).
        sure: whether opening a shard tells that its file is in the format (formats).
    """

    name: str
    target: str
    markers: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    begins: bytes = b""
    proof: str = ""
    lone: tuple[str, ...] = ()
    parameters: str = ""
    schemes: tuple[str, ...] = ()
    sources: str = ""
    extra: str = ""
    remote: bool = False
    text: bool = False
    sure: bool = False


# What text files and tars may be compressed with, in every usual spelling.
_PACKED = (
    *("", ".gz", ".gzip", ".bz2", ".bz", ".bzip2", ".xz", ".lzma"),
    *(".zst", ".zstd", ".pzstd", ".lz4", ".br"),
)


def _packed(*suffixes: str) -> tuple[str, ...]:
    return tuple(suffix + packed for suffix in suffixes for packed in _PACKED)


# How `datasets` can be told to read files, and what it takes beside that without any rows being other ones.
_CSV = (
    "sep delimiter header names column_names skiprows quotechar quoting escapechar doublequote comment skipinitialspace"
    " lineterminator skip_blank_lines usecols index_col nrows na_values na_filter skipfooter dialect encoding"
    " encoding_errors"
    " keep_default_na thousands decimal true_values false_values engine memory_map float_precision chunksize"
    " date_format low_memory verbose mangle_dupe_cols drop_labels drop_metadata metadata_filenames"
)
_JSON = (
    "field encoding encoding_errors"
    " chunksize block_size use_threads on_mixed_types parse_agent_traces drop_labels drop_metadata metadata_filenames"
)
_TEXT = "sample_by keep_linebreaks encoding encoding_errors chunksize"

FORMATS = (
    Row(
        "litdata", "litdata.dataset:LitData", markers=("index.json", "chunk-*.bin"), lone=(".bin",)
    ),
    Row("litdata-parquet", "parquet.litdata:LitDataParquet", markers=("index.json",), sure=True),
    Row(
        "mds",
        "mds.dataset:Mds",
        markers=("index.json",),
        suffixes=(
            *(".mds", ".mds.zstd", ".mds.zst", ".mds.gz", ".mds.br", ".mds.bz2"),
            ".mds.snappy",
        ),
    ),
    Row(
        "webdataset",
        "webdataset.dataset:WebDataset",
        markers=("shardindex.json",),
        suffixes=(
            *_packed(".tar"),
            *(".tgz", ".taz", ".tbz", ".tbz2", ".tb2", ".tz2", ".txz", ".tlz"),
            *(".tzst", ".tzstd", ".tlz4"),
        ),
        proof="webdataset.header:begins_archive",
        sure=True,
    ),
    Row(
        "arrow",
        "arrow.dataset:Arrow",
        markers=("state.json",),
        suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
        begins=rb"ARROW1|\xff\xff\xff\xff..[\0-\x0f]\0.{4}",  # a stream begins with the length of its schema
        sure=True,
    ),
    Row(
        "parquet",
        "parquet.dataset:Parquet",
        suffixes=(".parquet", ".geoparquet", ".gpq", ".parq", ".pq"),
        begins=rb"PAR1",
        sure=True,
    ),
    Row(
        "jsonl",
        "text.jsonl:Jsonl",
        parameters=_JSON,
        suffixes=_packed(".jsonl", ".ndjson", ".jsonlines", ".ldjson"),
        proof="text.jsonl:begins_lines",
        text=True,
    ),
    Row(
        "json",
        "text.jsonl:Json",
        parameters=_JSON,
        lone=_packed(".json"),
        text=True,
        proof="text.jsonl:begins_document",
    ),
    Row("csv", "text.csv:Csv", parameters=_CSV, suffixes=_packed(".csv", ".tsv"), text=True),
    Row("text", "text.lines:Text", parameters=_TEXT, lone=_packed(".txt"), text=True),
)

SOURCES = (
    Row("local", "local:open_source", schemes=("", "file")),
    Row(
        "hub",
        "hub:open_source",
        schemes=("hf",),
        sources=r"https?://(www\.)?(huggingface\.co|hf\.co)/",
        remote=True,
    ),
    Row(
        "zenodo",
        "zenodo:open_source",
        sources=(
            r"(?i)zenodo:|https?://((www|sandbox)\.)?zenodo\.org(/|$)"
            r"|(doi:\s*|https?://((dx|www)\.)?doi\.org/)?10\.(5281|5072)/zenodo\."
        ),
        remote=True,
    ),
    Row("http", "http:open_source", schemes=("http", "https"), remote=True),
)

# For all other schemes.
OTHER_SOURCES = Row("fsspec", "fsspec_source:open_source", extra="fsspec", remote=True)

# Files that are shown as folders of what is in them.
ARCHIVES = (Row("zip", "zip:ZipStore", suffixes=(".zip",), begins=rb"PK(\x03\x04|\x05\x06)"),)

CODECS = (
    Row("zstd", "zstd:Zstd", suffixes=(".zst",)),
    Row("gz", "gzip:Gzip", suffixes=(".gz",)),
    Row("bz2", "bzip2:Bzip2", suffixes=(".bz2",)),
    Row("xz", "xz:Xz", suffixes=(".xz",)),
    Row("lz4", "lz4:Lz4", suffixes=(".lz4",)),
    Row("br", "brotli:Brotli", suffixes=(".br",)),
    Row("snappy", "snappy:Snappy", suffixes=(".snappy",)),
)

# Encodings of text, which are made to UTF-8 as if they were compressions.
CHARSETS = (Row("charset", "charset:Charset"),)

# Codecs whose files have places inside from which decompression can begin.
INDEXERS = (
    Row("zstd", "zstd_frames:ZstdFrames"),
    Row("gz", "gzip_points:GzipPoints"),
    Row("xz", "xz_blocks:XzBlocks"),
    Row("charset", "charset:CharsetPieces"),
)


def suffixes_of(name: str) -> tuple[str, ...]:
    """The suffixes of the files that are shards of the format *name*."""
    return next(row.suffixes for row in FORMATS if row.name == name)


def source_row(source: str) -> Row:
    """The kind of source that *source* is."""
    for row in SOURCES:
        if row.sources and re.match(row.sources, source):
            return row
    scheme = source.partition("://")[0] if "://" in source else ""
    return next((row for row in SOURCES if scheme in row.schemes), OTHER_SOURCES)


def load_codec(rows: Sequence[Row], codec: str) -> Any:
    """The codec of that name among *rows*, made with what stands behind a colon in it; None where there is none."""
    name, _, argument = codec.partition(":")
    row = next((row for row in rows if row.name == name), None)
    loaded = None if row is None else load("codecs", row)
    return loaded(argument) if argument and loaded is not None else loaded


def begins(row: Row, head: bytes) -> bool:
    """Whether a file that begins with *head* is one of the format *row*, or an archive of that kind; by that alone."""
    if row.begins:
        return re.match(row.begins, head, re.DOTALL) is not None
    return bool(row.proof and load("formats", replace(row, target=row.proof))(head))


def load(package: str, row: Row) -> Any:
    """What *row* names, imported now.

    Raises:
        MissingPackage: a package that it needs is not installed.
    """
    module, _, name = row.target.partition(":")
    try:
        return getattr(importlib.import_module(f"shardfs.{package}.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("shardfs"):
            raise
        extra = f"shardfs[{row.extra}]" if row.extra else str(error.name)
        raise MissingPackage(f"{row.name} needs {error.name}: pip install '{extra}'") from error
