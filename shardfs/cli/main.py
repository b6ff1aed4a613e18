# PYTHON_ARGCOMPLETE_OK
"""The command ``shardfs``: says which arguments each command takes and which function does it."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from shardfs.cli import console
from shardfs.cli.arguments import (
    TREE,
    MountOptionsAction,
    Parser,
    add_logging,
    add_mount_places,
    add_options,
    add_source,
    checked,
    mount_options_parser,
)
from shardfs.cli.console import LogOptions
from shardfs.cli.request import mount_request, open_listing, pick, tree_options
from shardfs.cli.values import parse_count, parse_path
from shardfs.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABOUT = "Show sharded training datasets as read-only folder trees: MNT/<shard>/<record>/<field>."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # set by the shell's completion, which needs the package
        importlib.import_module("argcomplete").autocomplete(parser)
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    return console.run(partial(_run, arguments))


def _run(arguments: argparse.Namespace, messages: console.Log) -> int:
    messages.configure(pick(LogOptions, arguments))
    code: int = arguments.command(arguments, messages)
    return code


# --- parsers -----------------------------------------------------------------------------------------------


def _parser() -> Parser:
    parser = Parser(prog="shardfs", description=_ABOUT, allow_abbrev=False)
    parser.add_argument(
        "-V", "--version", action=_Versions, nargs=0, help="show all versions and exit"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_mount(commands)
    _add_umount(commands)
    _add_ls(commands)
    _add_cat(commands)
    _add_cp(commands)
    _add_grep(commands)
    _add_info(commands)
    _add_status(commands)
    _add(commands, "version", _version, "show the versions of shardfs and of what it uses")
    return parser


def _add(commands: Any, name: str, command: object, help: str, **more: Any) -> Parser:
    parser: Parser = commands.add_parser(
        name, help=help, description=help[0].upper() + help[1:] + ".", allow_abbrev=False, **more
    )
    parser.set_defaults(command=command)
    return parser


def _add_mount(commands: Any) -> None:
    parser = _add(
        commands,
        "mount",
        _mount,
        "show SRC as a folder tree on MNT",
        usage="shardfs mount [-f] [-o OPT[=VALUE],...] [--OPT[=VALUE]]... SRC MNT",
        parents=[mount_options_parser()],
    )
    add_mount_places(parser)
    parser.add_argument(
        "-o",
        dest="_",
        action=MountOptionsAction,
        metavar="OPT[=VALUE],...",
        help="any of the long options below, without their hyphens",
    )


def _add_umount(commands: Any) -> None:
    parser = _add(commands, "umount", _umount, "unmount, stale mounts too", aliases=["unmount"])
    parser.add_argument("mount_points", metavar="MNT", nargs="+", type=checked(parse_path))
    parser.add_argument("-l", "--lazy", action="store_true", help="even while it is in use")
    add_logging(parser)


def _add_reader(commands: Any, name: str, command: object, help: str) -> Parser:
    """A command that opens a source without mounting it."""
    parser = _add(commands, name, command, help)
    add_source(parser)
    add_options(parser, "what is shown, at which cost", TREE)
    add_logging(parser)
    return parser


def _add_ls(commands: Any) -> None:
    parser = _add_reader(commands, "ls", _ls, "list a folder of the tree")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="may hold * ? [] and **")
    parser.add_argument("-l", dest="long", action="store_true", help="with types, sizes and times")


def _add_cat(commands: Any) -> None:
    parser = _add_reader(commands, "cat", _cat, "write files of the tree to standard output")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="may hold * ? [] and **")
    parser.add_argument("--jsonl", action="store_true", help="all records as JSON Lines")
    _add_workers(parser)


def _add_workers(parser: Parser) -> None:
    """What says who works on shards."""
    group = parser.add_argument_group("who works")
    group.add_argument(
        "--jobs", metavar="N", type=checked(parse_count), default=0, help="processes"
    )
    group.add_argument("--dask", metavar="ADDRESS", default="", help="a Dask cluster instead")


def _add_cp(commands: Any) -> None:
    parser = _add_reader(commands, "cp", _cp, "copy files and whole folders out of the tree")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="may hold * ? [] and **")
    parser.add_argument("target", metavar="DEST", type=checked(parse_path))
    parser.add_argument(
        "--from-list",
        metavar="FILE",
        help="copy the paths in its lines (-: standard input), with their folders",
    )
    for short in ("-r", "-R", "-a"):  # what it does anyway, for habit
        parser.add_argument(short, action="store_true", help=argparse.SUPPRESS)


def _add_grep(commands: Any) -> None:
    parser = _add(commands, "grep", _grep, "find the records whose text, numbers or JSON match")
    parser.add_argument("pattern", metavar="PATTERN", help="a regular expression")
    add_source(parser)
    parser.add_argument("-F", dest="fixed", action="store_true", help="PATTERN is plain text")
    parser.add_argument("-i", dest="ignore_case", action="store_true", help="in any case")
    parser.add_argument("-l", dest="only_paths", action="store_true", help="only paths of records")
    parser.add_argument(
        "-c", "--count", action="store_true", help="only how many records match, for each shard"
    )
    parser.add_argument(
        "--field", metavar="F", action="append", default=[], help="only in this field (repeatable)"
    )
    _add_workers(parser)
    add_options(parser, "what is looked at, at which cost", TREE)
    add_logging(parser)


def _add_info(commands: Any) -> None:
    parser = _add_reader(commands, "info", _info, "tell format, schema, shards and counts")
    parser.add_argument(
        "--count", action="store_true", help="count all records, which may take a while"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def _add_status(commands: Any) -> None:
    parser = _add(commands, "status", _status, "list all mounts, without touching them")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_logging(parser)


class _Versions(argparse.Action):
    """``--version``: its text is only made when it is asked for."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        parser.exit(console.run(partial(_version, namespace)))


# --- commands ----------------------------------------------------------------------------------------------
# What they need is imported only here: each of them works without what only the others need.


def _mount(arguments: argparse.Namespace, messages: console.Log) -> int:
    from shardfs.cli import mounter

    return mounter.mount(mount_request(arguments), messages)


def _umount(arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import mounter

    return mounter.unmount(arguments.mount_points, lazy=arguments.lazy)


def _ls(arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import browse

    options = tree_options(arguments)
    return browse.ls(arguments.source, arguments.paths or [""], options, long=arguments.long)


def _cat(arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import browse

    options = tree_options(arguments)
    if arguments.jsonl:
        if arguments.paths:
            raise UsageError("--jsonl writes all records: name no PATH")
        source = arguments.source
        return browse.cat_lines(source, options, jobs=arguments.jobs, dask=arguments.dask)
    if not arguments.paths:
        raise UsageError("cat: which PATH? (or --jsonl for all records)")
    return browse.cat(arguments.source, arguments.paths, options)


def _cp(arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import browse

    options = tree_options(arguments)
    source, paths, target = arguments.source, arguments.paths, arguments.target
    if arguments.from_list is None:
        if not paths:
            raise UsageError("cp: which PATH? (or --from-list FILE)")
        return browse.cp(source, paths, target, options)
    if paths:
        raise UsageError("--from-list says what to copy: name no PATH")
    with open_listing(arguments.from_list) as listing:
        return browse.cp_listed(source, listing, target, options)


def _grep(arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import search
    from shardfs.work.grep import Wanted

    wanted = Wanted(
        pattern=arguments.pattern,
        fixed=arguments.fixed,
        ignore_case=arguments.ignore_case,
        fields=frozenset(arguments.field),
    )
    shown: search.Shown = "lines"
    if arguments.count or arguments.only_paths:
        shown = "counts" if arguments.count else "paths"
    options, workers = tree_options(arguments), {"jobs": arguments.jobs, "dask": arguments.dask}
    return search.grep(arguments.source, wanted, options, shown, **workers)


def _info(arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import facts

    return facts.info(
        arguments.source,
        tree_options(arguments),
        as_json=arguments.json,
        count=arguments.count,
        quiet=arguments.quiet,
    )


def _status(arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import status

    mounts = list(status.overview())
    print(json.dumps(mounts, indent=2) if arguments.json else status.show(mounts), end="")
    return 0


def _version(_arguments: argparse.Namespace, _messages: console.Log) -> int:
    from shardfs.cli import versions

    print(versions.report())
    return 0
