"""Options as long options and after ``-o``, and the values that come of them."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shardfs.cli import arguments
from shardfs.cli.console import LogOptions
from shardfs.cli.main import main
from shardfs.cli.request import MountRequest, RunOptions, mount_request, pick
from shardfs.errors import UsageError
from shardfs.options import INDEFINITE, MountOptions, Options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = arguments.Parser(allow_abbrev=False, parents=[arguments.mount_options_parser()])
    arguments.add_mount_places(parser)
    parser.add_argument("-o", dest="_", action=arguments.MountOptionsAction)
    return parser.parse_args(["/src", "/mnt", *argv])


def asked(line: str) -> MountRequest:
    return mount_request(parse(shlex.split(line)))


def test_without_options_all_values_are_those_of_the_dataclasses() -> None:
    assert asked("") == MountRequest(
        source="/src",
        mount_point=Path("/mnt"),
        options=Options(),
        settings=MountOptions(fsname="shardfs:/src"),
        run=RunOptions(),
    )


def test_every_field_has_an_option() -> None:
    named = {o.name for o in (*arguments.TREE, *arguments.MOUNT, *arguments.LOGGING)}
    kinds = (Options, MountOptions, RunOptions, LogOptions)
    wanted = {field.name for kind in kinds for field in fields(kind)}
    assert wanted - named == {"password", "token", "verbose"}
    assert named - wanted == {"token_file"}


@pytest.mark.parametrize(
    ("long", "short", "field", "value"),
    [
        ("--allow-other", "allow_other", "allow_other", True),
        ("--allow-other", "allow-other", "allow_other", True),
        ("--uid=7", "uid=7", "uid", 7),
        ("--umask 027", "umask=027", "umask", 0o027),
        ("--metadata-ttl indefinite", "metadata_ttl=indefinite", "metadata_ttl", INDEFINITE),
        ("--read-ahead 4MiB", "read_ahead=4MiB", "read_ahead", 4 << 20),
        ("--fsname x", "fsname=x", "fsname", "x"),
    ],
)
def test_an_option_is_the_same_both_ways(long: str, short: str, field: str, value: object) -> None:
    assert getattr(asked(long).settings, field) == value
    assert getattr(asked(f"-o {short}").settings, field) == value


def test_underscores_in_long_options() -> None:
    assert asked("--cache_dir=/a_b --allow_other").options.cache_dir == Path("/a_b")
    assert asked("--cache_dir /a_b").options.cache_dir == Path("/a_b")


def test_names_with_commas_between_them() -> None:
    assert asked("--columns image,label").options.columns == ("image", "label")
    assert asked(r"-o 'columns=image\,label,raw'").options == Options(
        columns=("image", "label"), raw=True
    )


def test_a_reader_is_one_of_those_there_are() -> None:
    options = asked("--rank 3 --world 4").options
    assert (options.rank, options.world) == (3, 4)
    for wrong in ("--rank 4 --world 4", "--rank 1"):
        with pytest.raises(UsageError, match="--world"):
            asked(wrong)


@pytest.mark.parametrize("argv", ["--no-splits", "-o no_splits", "-o no-splits"])
def test_switches_have_a_twin_that_turns_them_off(argv: str) -> None:
    assert not asked(argv).options.splits
    assert asked(f"{argv} --splits").options.splits


def test_the_later_wins_however_it_is_written() -> None:
    assert asked("--uid 1 -o uid=2,uid=3").settings.uid == 3
    assert asked("-o uid=2 --uid 1").settings.uid == 1


def test_options_after_several_o_and_between_long_ones_are_all_kept() -> None:
    request = asked("--raw -o allow_other,layout=flat -o gid=5 --fanout 9")
    assert request.options == Options(raw=True, layout="flat", fanout=9)
    assert request.settings.allow_other
    assert request.settings.gid == 5


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("a,b=c", ["a", "b=c"]),
        (",a,,b,", ["a", "b"]),
        (r"a=x\,y,b", ["a=x,y", "b"]),
        (r"a=x\\,b", ["a=x\\", "b"]),
        (r"a=x\y,b", [r"a=x\y", "b"]),
        ("a=b=c", ["a=b=c"]),
    ],
)
def test_commas_in_values_are_escaped_with_a_backslash(text: str, parts: list[str]) -> None:
    assert arguments.split_mount_options(text) == parts


def test_foreign_options_are_left_out() -> None:
    foreign = (
        "defaults,ro,_netdev,nofail,noauto,auto,user,users,user=me,suid,nosuid,dev,nodev,exec,noexec"
        ",noatime,relatime,x-systemd.automount,x-gvfs-show,comment=a b,subtype=shardfs"
    )
    assert arguments.to_arguments(foreign) == []


def test_rw_passes_only_in_fstab() -> None:
    assert arguments.to_arguments("rw", fstab=True) == []
    with pytest.raises(UsageError, match="every mount is read-only"):
        arguments.to_arguments("rw")


@pytest.mark.parametrize("text", ["frobnicate", "uids=3", "no-uidx", "nouid", "x"])
def test_unknown_options_are_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=text):
        arguments.to_arguments(text)


@pytest.mark.parametrize(
    "line",
    [
        "mount",
        "mount a",
        "mount a b c",
        "mount a b --frob",
        "mount a b --cache-size 12X",
        "mount a b -o uid=",
        "mount a b -o frob",
        "mount a b -o rw",
        "mount a b --layout spiral",
        "mount '' b",
        "umount",
        "frob",
        "",
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("shardfs: ")
    assert error.count("\n") == 1


def test_debug_stays_in_the_foreground() -> None:
    assert asked("-d").run.foreground
    assert not asked("--daemon").run.foreground


def test_how_talkative() -> None:
    levels = [
        pick(LogOptions, parse(a)).level for a in ([], ["-v"], ["-vvv"], ["-q"], ["-q", "-d"])
    ]
    assert levels == [30, 20, 10, 40, 10]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("/data/what?", "/data/what?"),
        ("https://me:secret@host/a.tar", "https://host/a.tar"),
        ("https://host/a.tar?X-Signature=secret", "https://host/a.tar"),
        ("hf://datasets/o/n@rev/p", "hf://datasets/o/n@rev/p"),
    ],
)
def test_the_mount_table_shows_no_secrets(source: str, shown: str) -> None:
    given = parse([])
    given.source = source
    assert mount_request(given).settings.fsname == f"shardfs:{shown}"


def test_the_password_leaves_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDFS_PASSWORD", "open sesame")
    request = asked("")
    assert request.options.password == "open sesame"
    assert "sesame" not in repr(request)
    assert asked("").options.password is None


def test_a_password_file_ends_at_its_first_line(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"p\xc3\xa4ss word \r\nmore")
    assert asked(f"-o password_file={file}").options.password == "päss word "


def test_a_token_file_ends_at_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_secret \n")
    assert asked(f"--token-file {tmp_path}/token").options.token == "hf_secret"
    assert "hf_secret" not in repr(asked(f"--token-file {tmp_path}/token"))


def test_a_password_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        asked(f"--password-file {tmp_path}/none")
