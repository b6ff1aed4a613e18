"""``mount.shardfs`` and ``mount.fuse.shardfs``: what mount(8), and so fstab and systemd, run for the type shardfs.

They belong in /sbin, as links. The call is ``mount.shardfs SRC MNT [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTIONS]``;
exit codes are those of mount(8).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from shardfs.cli import console, mounter
from shardfs.cli.arguments import Parser, add_mount_places, mount_options_parser, to_arguments
from shardfs.cli.request import mount_request, pick

if TYPE_CHECKING:
    from collections.abc import Sequence

_WRONG_USE, _FAILED = 1, 32


def main(argv: Sequence[str] | None = None) -> int:
    """Run the helper; the exit code."""
    parser = Parser(description="Mount a dataset: a helper of mount(8).", allow_abbrev=False)
    add_mount_places(parser)
    parser.add_argument("-o", dest="options", metavar="OPTIONS", action="append", default=[])
    parser.add_argument("-f", dest="fake", action="store_true", help="do all but mount")
    for short in ("-s", "-n", "-v"):  # sloppy options, no mtab, verbose: nothing changes
        parser.add_argument(short, action="store_true", help=argparse.SUPPRESS)
    for short in ("-N", "-t"):
        parser.add_argument(short, help=argparse.SUPPRESS)
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    code = console.run(partial(_mount, arguments))
    return {0: 0, console.WRONG_USE: _WRONG_USE}.get(code, _FAILED)


def _mount(arguments: argparse.Namespace, messages: console.Log) -> int:
    given = [part for text in arguments.options for part in to_arguments(text, fstab=True)]
    arguments = mount_options_parser().parse_args(given, arguments)
    messages.configure(pick(console.LogOptions, arguments))
    request = mount_request(arguments)
    return 0 if arguments.fake else mounter.mount(request, messages)
