"""Every option, once: a long option of the command line, and ``name[=value]`` after ``-o``, with ``_`` for ``-`` too.

``-o`` is taken apart into long options, which the same parser reads: one set of types and messages, and the later of
two wins however they are written. Defaults are those of the dataclasses that the values go to.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn

from shardfs.cli.console import LogOptions
from shardfs.cli.request import RunOptions
from shardfs.cli.values import (
    parse_count,
    parse_group,
    parse_layout,
    parse_mode,
    parse_names,
    parse_path,
    parse_positive,
    parse_seconds,
    parse_size,
    parse_source,
    parse_user,
    show_size,
)
from shardfs.errors import UsageError
from shardfs.options import INDEFINITE, MountOptions, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


# --- the table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One option; *name* is that of the field that it sets, *parse* makes its value, None for a switch."""

    name: str
    help: str
    parse: Callable[[str], object] | None = None
    metavar: str = ""
    short: str = ""

    @property
    def long(self) -> str:
        return "--" + self.name.replace("_", "-")


TREE = (
    Option("layout", "record, flat or field: how records become folders", parse_layout, "LAYOUT"),
    Option("fanout", "put records into folders of N where a shard has more", parse_count, "N"),
    Option("raw", "show every field as its stored bytes"),
    Option("splits", "show the configs and splits that a source declares"),
    Option("config", "show this config only", str, "NAME"),
    Option("split", "show this split only", str, "NAME"),
    Option("columns", "show these fields only", parse_names, "NAME,..."),
    Option(
        "rank", "show the share of reader N, from 0, of those that --world says", parse_count, "N"
    ),
    Option("world", "how many readers share the dataset", parse_count, "N"),
    Option("follow_links", "follow symbolic links that leave the source"),
    Option("recursive", "show shards and archives that are members of tars as folders, too"),
    Option("block_size", "tokens in a record of a token dataset", parse_count, "N"),
    Option("key_file", "key of an encrypted dataset", parse_path, "FILE"),
    Option(
        "password_file",
        "password of an encrypted dataset (or SHARDFS_PASSWORD)",
        parse_path,
        "FILE",
    ),
    Option("max_chunk_size", "what a compressed chunk may become", parse_size, "SIZE"),
    Option("memory_limit", "decompressed bytes held in memory", parse_size, "SIZE"),
    Option("cache_dir", "folder of the disk cache", parse_path, "DIR"),
    Option("cache_size", "what the disk cache may take", parse_size, "SIZE"),
    Option("disk_cache", "keep a cache on disk"),
    Option("rebuild_index", "forget what the disk cache knows of the source"),
    Option("revision", "branch, tag or commit of a repository on the Hub", str, "NAME"),
    Option("token_file", "token for the Hub (or HF_TOKEN)", parse_path, "FILE"),
    Option("offline", "ask no server: show what the disk cache has (or HF_HUB_OFFLINE=1)"),
    Option("connections", "requests to one server at a time", parse_positive, "N"),
    Option("retries", "how often to try again when a server fails", parse_count, "N"),
    Option("timeout", "how long a server may be silent", parse_seconds, "SECONDS"),
)

MOUNT = (
    Option("foreground", "stay in the foreground", short="-f"),
    Option("wait_timeout", "how long the mount may take to be ready", parse_seconds, "SECONDS"),
    Option("allow_non_empty", "mount over a folder that is not empty"),
    Option("allow_other", "let all users use the mount"),
    Option("allow_root", "let root use the mount"),
    Option("uid", "owner of all files", parse_user, "USER"),
    Option("gid", "group of all files", parse_group, "GROUP"),
    Option("umask", "permissions taken from all files and folders", parse_mode, "MODE"),
    Option("dir_mode", "permissions of folders", parse_mode, "MODE"),
    Option("file_mode", "permissions of files", parse_mode, "MODE"),
    Option(
        "metadata_ttl", "how long the kernel keeps names, or `indefinite`", parse_seconds, "SECONDS"
    ),
    Option("read_ahead", "the kernel's read-ahead window", parse_size, "SIZE"),
    Option("max_threads", "requests that may wait for data at a time", parse_positive, "N"),
    Option("fsname", "source in the mount table (default: shardfs:SRC)", str, "NAME"),
    Option("auto_unmount", "let fusermount3 unmount should the daemon die"),
)

LOGGING = (
    Option("quiet", "only tell what fails", short="-q"),
    Option("debug", "tell all, with tracebacks; a mount stays in the foreground", short="-d"),
    Option("log_file", "write messages to FILE, too", parse_path, "FILE"),
)

_ALIASES = {"nonempty": "allow-non-empty"}

# What mount(8), fstab and systemd put among the options; it is theirs, or true of every shardfs mount.
_FOREIGN = re.compile(
    r"(defaults|ro|read[-_]only|(no)?(auto|dev|suid|exec|user|users|owner|group|atime|diratime|relatime|fail)|_netdev"
    r"|strictatime|lazytime|a?sync|remount|loud|silent|(comment|subtype|user)=.*|x[-.].*)"
)

_DEFAULTS: dict[str, Any] = {
    "token_file": None,
    **{
        field.name: field.default
        for kind in (Options, MountOptions, RunOptions, LogOptions)
        for field in fields(kind)
    },
    "fsname": None,  # one that names the source
}


# --- the parser --------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors that takes ``--cache_dir`` for ``--cache-dir``."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"shardfs: {message} (see {self.prog} --help)\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        return super().parse_known_args(None if args is None else _hyphened(args), namespace)


def _hyphened(args: Iterable[str]) -> list[str]:
    """*args* with ``-`` for ``_`` in the names of long options, up to a lone ``--``."""
    result, options = [], True
    for arg in args:
        options &= arg != "--"
        name, equals, value = arg.partition("=")
        is_long = options and name.startswith("--")
        result.append(name.replace("_", "-") + equals + value if is_long else arg)
    return result


def add_options(parser: argparse.ArgumentParser, title: str, table: Iterable[Option]) -> None:
    """Give *parser* the options of *table* under a heading."""
    _add_group(parser, title, table)


def _add_group(
    parser: argparse.ArgumentParser, title: str, table: Iterable[Option]
) -> argparse._ArgumentGroup:
    group = parser.add_argument_group(title)
    for option in table:
        default = _DEFAULTS[option.name]
        names = [option.short, option.long] if option.short else [option.long]
        if option.parse is None:
            group.add_argument(*names, action=argparse.BooleanOptionalAction, help=option.help)
        else:
            group.add_argument(
                *names,
                type=checked(option.parse),
                metavar=option.metavar,
                help=option.help + _shown(option, default),
            )
        # Not in the calls above: some versions of argparse would add it to the help in Python's words.
        parser.set_defaults(**{option.name: default})
    return group


def _shown(option: Option, default: Any) -> str:
    if not default:
        return ""
    if option.parse is parse_size:
        text = show_size(default)
    elif option.parse is parse_mode:
        text = f"{default:03o}"
    elif option.parse is parse_seconds:
        text = "indefinite" if default == INDEFINITE else f"{default:g}"
    else:
        text = str(default)
    return f" (default: {text})"


def checked(parse: Callable[[str], object]) -> Callable[[str], object]:
    """*parse* with its own words in argparse's message."""

    def checked(text: str) -> object:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return checked


def add_source(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the argument SRC."""
    parser.add_argument(
        "source",
        metavar="SRC",
        type=checked(parse_source),
        help="a dataset, a shard or a folder of them",
    )


def add_mount_places(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the arguments SRC and MNT."""
    add_source(parser)
    parser.add_argument(
        "mount_point",
        metavar="MNT",
        type=checked(parse_path),
        help="an empty folder; made if missing",
    )


def add_logging(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the options that every command has."""
    group = _add_group(parser, "messages", LOGGING)
    group.add_argument(
        "-v", "--verbose", action="count", default=0, help="tell more; twice, tell all"
    )


def mount_options_parser() -> Parser:
    """A parser of all options that a mount can have and nothing else; to be a parent of others."""
    parser = Parser(add_help=False, allow_abbrev=False, prog="shardfs mount")
    add_options(parser, "how it is mounted", MOUNT)
    # What is so anyway, for those used to mounters where it is not.
    parser.add_argument("--daemon", dest="foreground", action="store_false", help=argparse.SUPPRESS)
    parser.add_argument("--read-only", action="store_true", help=argparse.SUPPRESS)
    add_options(parser, "what is shown, at which cost", TREE)
    add_logging(parser)
    return parser


def split_mount_options(text: str) -> list[str]:
    r"""The parts of ``a,b=c``; a comma in a value is written ``\,`` and a backslash before one ``\\``."""
    parts = re.findall(r"(?:\\[\\,]|[^,])+", text)
    return [re.sub(r"\\([\\,])", r"\1", part) for part in parts]


def to_arguments(text: str, *, fstab: bool = False) -> list[str]:
    """The long options that stand for what was given after ``-o``; foreign ones are left out.

    ``rw`` is refused unless it comes from *fstab*, where mount(8) adds it on its own.

    Raises:
        UsageError: there is no such option.
    """
    known = {option.long[2:]: option for option in (*TREE, *MOUNT, *LOGGING)}
    arguments = []
    for part in split_mount_options(text):
        name, equals, value = part.partition("=")
        name = name.replace("_", "-")
        name = _ALIASES.get(name, name)
        if name in known or (name.startswith("no-") and name[3:] in known) or name == "verbose":
            arguments.append(f"--{name}{equals}{value}")
        elif not (_FOREIGN.fullmatch(part) or (part == "rw" and fstab)):
            why = "every mount is read-only" if part == "rw" else "there is no such mount option"
            raise UsageError(f"-o {part}: {why}")
    return arguments


class MountOptionsAction(argparse.Action):
    """``-o``: reads its value with the parser of all mount options, in the place where it stands."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        try:
            arguments = to_arguments(str(values))
        except UsageError as error:
            parser.error(str(error))
        mount_options_parser().parse_args(arguments, namespace)
