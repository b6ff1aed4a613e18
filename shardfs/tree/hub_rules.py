"""How the Hugging Face Hub divides a repository into splits where no YAML does: by the names of its files.

These are the rules of the library `datasets` 5.2: `get_data_patterns` in data_files.py for what is in which split,
`infer_module_for_data_files` in load.py for the reader, packaged_modules/__init__.py for the suffixes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardfs.model import NO_PARAMETERS, Parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

IGNORED = frozenset(
    {
        "README.md",
        "config.json",
        "dataset_info.json",
        "dataset_infos.json",
        "dataset_dict.json",
        "dummy_data.zip",
    }
)
"""Names of files that are never data, unless they are asked for by name."""

SPLIT_NAME = re.compile(r"\w+(\.\w+)*")
"""What a split can be called."""

_KEYWORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
KEYWORDS = frozenset(word for words in _KEYWORDS.values() for word in words)
"""Words that say in a name which split it is of."""
_PLACES = {
    word: (split, place) for split, words in _KEYWORDS.items() for place, word in enumerate(words)
}
# What must stand beside a keyword inside a name.
_SIGNS = re.compile("[-._ 0-9]")
_SHARDED = re.compile(r"data/[^/]*-[0-9]{5}-of-[0-9]{5}[^/]*\.[^/]*")
# Four digits behind, not five: so the library has it, which then takes the last place that fits.
_SHARD = re.compile("(.+)-[0-9]{5}-of-[0-9]{4}")

# The suffixes of each reader whose files are shards here as well. That for tabs counts as one of its own.
_READERS = {
    "csv": ".csv",
    "tsv": ".tsv",
    "json": ".json .jsonl .ndjson",
    "parquet": ".parquet .geoparquet .gpq",
    "arrow": ".arrow",
    "text": ".txt",
    "webdataset": ".tar",
}
_TOGETHER = {"csv": ("csv", "tsv"), "tsv": ("csv", "tsv")}
# Readers of folders in which one table may tell of the other files. These suffixes count in upper case too, but for
# those of mmcif.
_MEDIA = {
    "image": (
        ".blp .bmp .dib .bufr .cur .pcx .dcx .dds .ps .eps .fit .fits .fli .flc .ftc .ftu .gbr .gif .grib .png .apng"
        " .jp2 .j2k .jpc .jpf .jpx .j2c .icns .ico .im .iim .tif .tiff .jfif .jpe .jpg .jpeg .msp .pcd .pxr .pbm .pgm"
        " .ppm .pnm .psd .bw .rgb .rgba .sgi .ras .tga .icb .vda .vst .webp .wmf .emf .xbm .xpm"
    ),
    "audio": (
        ".mpg .aiff .au .avr .caf .flac .htk .svx .mat4 .mat5 .mpc2k .ogg .paf .pvf .raw .rf64 .sd2 .sds .ircam .voc"
        " .w64 .wav .nist .wavex .wve .xi .mp3 .opus .3gp .3g2 .asf .flv .m4v .webm .f4v .wmv .wma .ogm .mxf .nut"
    ),
    "video": ".mpeg .avi .mp4 .mov .mkv",
    "mesh": ".glb .gltf .ply .stl",
    "pdf": ".pdf",
    "nifti": ".nii",
    "pdb": ".pdb .ent",
    "mmcif": ".cif .mmcif",
}
_METADATA = frozenset({"metadata.csv", "metadata.jsonl", "metadata.parquet"})
# Readers of what is no shard here. Which of them it is makes no difference.
_OTHER = (
    ".conll .conllu .xml .hdf5 .h5 .eval .toml .md .lance .tsfile .vortex .fa .fasta .fna .ffn .faa .frn .afa"
    " .gb .gbk .genbank .fq .fastq .zip"
)

_READER = {
    suffix: reader
    for reader, suffixes in ({"": _OTHER} | _READERS | _MEDIA).items()
    for suffix in suffixes.split()
}
_UPPER = {
    suffix.upper() for suffix, reader in _READER.items() if reader in _MEDIA and reader != "mmcif"
}
# A file without any of these is none to `datasets`.
_KNOWN = frozenset(_READER) | _UPPER | {".idx", ".txn", ".manifest"}
# The suffix of these says little about the files around them.
_ASIDE = _METADATA | {"task.toml", "instruction.md", "latest_version_hint.json"}
# Which of two suffixes wins that are equally frequent.
_FAVOURITES = (".parquet", ".lance", ".vortex", ".arrow", ".jsonl", ".json", ".csv")


@dataclass(frozen=True, slots=True)
class Split:
    """A split of a config, the paths of its files in order, and how these are to be read."""

    config: str
    name: str
    files: tuple[str, ...]
    parameters: Parameters = NO_PARAMETERS

    def folder(self, *, alone: bool) -> tuple[str, ...]:
        """Where it stands in the tree; *alone*: its config is the only one, which then is no folder."""
        return (self.name,) if alone else (self.config, self.name)


def is_media(name: str) -> bool:
    """Whether a file is called like a picture, a sound, a film or another document that a program shows."""
    stem, dot, suffix = name.lower().rpartition(".")
    return bool(stem) and _READER.get(dot + suffix) in _MEDIA


def inferred_splits(files: Iterable[str]) -> list[Split]:
    """The splits of the config `default` that *files* fall into by their names, in their order.

    *files* are all paths in a repository. None where `datasets` finds none or gives up, and where
    it finds what is no shard here. Of folders of media, the tables that tell of them are in the splits. A file that
    the library would take twice is there once.
    """
    parts = _divided(sorted({path for path in files if _is_seen(path)}))
    if not all(map(SPLIT_NAME.fullmatch, parts)):
        return []
    parts = {split: [path for path in paths if _is_known(path)] for split, paths in parts.items()}
    readers = {_reader(paths) for paths in parts.values()}
    reader = readers.pop() if len(readers) == 1 else ""
    kept = {split: _kept(reader, paths) for split, paths in parts.items()}
    if not any(kept.values()):
        return []
    return [Split("default", split, tuple(paths)) for split, paths in kept.items()]


def _is_seen(path: str) -> bool:
    """Whether the rules look at a file at all: not if it is hidden or in a folder `__so`."""
    *folders, name = path.split("/")
    return (
        name not in IGNORED
        and not any(folder.startswith("__") for folder in folders)
        and not any(part.startswith(".") and part.strip(".") for part in (*folders, name))
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _suffixes(path: str) -> list[str]:
    """Each part of a name that begins with a dot, with that: `a.tar.gz` has two."""
    return [f".{part}" for part in _name(path).split(".")[1:]]


def _is_known(path: str) -> bool:
    return not _KNOWN.isdisjoint(_suffixes(path))


# --- which file is in which split ---


def _divided(files: Sequence[str]) -> dict[str, list[str]]:
    """The files of each split, by the first rule that finds any. What is left is in none."""
    return (
        _sharded(files)
        or _of("logs", (path for path in files if path.endswith(".eval")))
        or _of("test", (path for path in files if _name(path) in ("task.toml", "instruction.md")))
        or _by_keyword(files, _folder_marks())
        or _by_keyword(files, lambda path: _marks(_name(path), is_folder=False))
        or _of("train", files)
    )


def _of(split: str, files: Iterable[str]) -> dict[str, list[str]]:
    found = list(files)
    return {split: found} if found else {}


def _sharded(files: Sequence[str]) -> dict[str, list[str]]:
    """Splits by `data/SPLIT-00000-of-00001.parquet`, the names that are keywords first."""
    found: dict[str, list[str]] = {}
    for path in filter(_SHARDED.fullmatch, files):
        name = _SHARD.search(_name(path))
        found.setdefault(name[1] if name else "", []).append(path)
    order = [split for split in _KEYWORDS if split in found]
    return {split: found[split] for split in (*order, *sorted(found.keys() - set(order)))}


def _by_keyword(
    files: Sequence[str], marks: Callable[[str], Iterable[tuple[str, int]]]
) -> dict[str, list[str]]:
    """Splits by the (split, rank) that a path has; files of one rank stand together, as they match one pattern."""
    found: dict[str, list[tuple[int, str]]] = {split: [] for split in _KEYWORDS}
    for path in files:
        for split, rank in marks(path):
            found[split].append((rank, path))
    return {split: [path for _, path in sorted(pairs)] for split, pairs in found.items() if pairs}


def _marks(name: str, *, is_folder: bool) -> set[tuple[str, int]]:
    """(split, rank) of each keyword in a name: first by keyword, then by whether something stands before and behind.

    A keyword in the name of a file has something behind it.
    """
    words = _SIGNS.split(name)
    last = len(words) - 1
    return {
        (split, 4 * place + 2 * (at > 0) + (at < last))
        for at, word in enumerate(words)
        if word in _PLACES and (is_folder or at < last)
        for split, place in (_PLACES[word],)
    }


def _folder_marks() -> Callable[[str], set[tuple[str, int]]]:
    """Gives the marks of all folders that a file lies in. They are kept, since many files lie in few folders."""
    known: dict[str, set[tuple[str, int]]] = {"": set()}

    def marks(path: str) -> set[tuple[str, int]]:
        folder = path.rpartition("/")[0]
        if folder not in known:
            parts = folder.split("/")
            known[folder] = set().union(*(_marks(part, is_folder=True) for part in parts))
        return known[folder]

    return marks


# --- which files of a split are read ---


def _reader(files: Iterable[str]) -> str:
    """The reader of the most frequent suffix, "" where there is none or nothing that it reads is a shard."""
    counts = Counter(
        (_name(path) not in _ASIDE, suffix.lower()) for path in files for suffix in _suffixes(path)
    )

    def rank(counted: tuple[tuple[bool, str], int]) -> tuple[bool, int, list[bool], str]:
        (tells, suffix), count = counted
        return tells, count, [suffix == favourite for favourite in _FAVOURITES], suffix

    ranked = sorted(counts.items(), key=rank, reverse=True)
    return next((_READER[suffix] for (_, suffix), _ in ranked if suffix in _READER), "")


def _kept(reader: str, files: Iterable[str]) -> list[str]:
    """What of a split is shown, each file once."""
    if reader in _MEDIA:
        return [path for path in dict.fromkeys(files) if _name(path) in _METADATA]
    if reader not in _READERS:
        return []
    suffixes = " ".join(_READERS[each] for each in _TOGETHER.get(reader, (reader,))).split()
    # Anywhere in the path before a dot, even in the name of a folder: so the library has it.
    pattern = re.compile(rf".*({'|'.join(map(re.escape, suffixes))})(\..+)?$")
    return [path for path in dict.fromkeys(files) if pattern.match(path)]
