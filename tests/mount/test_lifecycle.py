"""The life of a mount: beginning, ending, going wrong. The real command, seen from outside."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.mount.conftest import Runner


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")

CAPTION = "chunk-0-0/000000/caption.txt"
WORDS = b"A red bicycle leaning against a brick wall"


def is_one_line(text: str) -> bool:
    return text.startswith("shardfs: ") and text.count("\n") == 1 and "Traceback" not in text


def is_gone(pid: int) -> bool:
    try:
        return b") Z " in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True


# --- beginning ---------------------------------------------------------------------------------------------


def test_ready_means_ready(shardfs: Runner) -> None:
    shardfs.mount()
    assert (shardfs.place / CAPTION).read_bytes() == WORDS
    (line,) = shardfs.mounts(shardfs.place)
    assert f"fuse.shardfs shardfs:{shardfs.source} " in line
    assert " ro," in line


def test_a_command_substitution_returns(shardfs: Runner) -> None:
    line = shlex.join(shardfs.command("mount", shardfs.source, shardfs.place))
    script = f'out=$(timeout 10 {line} 2>&1); echo $? "[$out]"; mountpoint -q {shardfs.place}'
    began = time.monotonic()
    run = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=shardfs.env)
    assert time.monotonic() - began < 8
    assert (run.returncode, run.stdout) == (0, "0 []\n")


def test_the_daemon_keeps_nothing_of_the_caller(shardfs: Runner) -> None:
    reading, writing = os.pipe()
    command = shardfs.command("mount", shardfs.source, shardfs.place)
    subprocess.run(
        command, env=shardfs.env, cwd=shardfs.folder, pass_fds=[writing], check=True, timeout=30
    )
    os.close(writing)
    os.set_blocking(reading, False)
    assert os.read(reading, 1) == b""  # nobody holds the other end: BlockingIOError otherwise
    os.close(reading)
    (pid,) = shardfs.daemons(shardfs.place)
    log = str(shardfs.folder / ".local/state/shardfs/shardfs.log")
    streams = [os.readlink(f"/proc/{pid}/fd/{n}") for n in (0, 1, 2)]
    assert streams == ["/dev/null", "/dev/null", log]
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) == pid


def test_relative_paths(shardfs: Runner) -> None:
    folder = shardfs.folder
    run = shardfs(
        *("mount", "./source", "mnt", "-v", "--cache-dir", "./c", "--log-file", "l/log"), cwd=folder
    )
    assert run.returncode == 0
    assert (shardfs.place / CAPTION).read_bytes() == WORDS
    assert "is mounted on" in (folder / "l" / "log").read_text()
    (mount,) = shardfs.status(shardfs.place)
    assert mount["cache_dir"] == str(folder / "c")
    assert shardfs("umount", "mnt", cwd=folder).returncode == 0
    assert "is unmounted" in (folder / "l" / "log").read_text()


def test_odd_names(shardfs: Runner) -> None:
    place = shardfs.folder / "a b,c\\d\ne"
    source = shardfs.source.rename(shardfs.folder / "so, urce\\")
    run = shardfs("mount", source, place)
    assert (run.returncode, run.stderr) == (0, "")
    assert (place / CAPTION).read_bytes() == WORDS
    (mount,) = shardfs.status(place)
    assert (mount["source"], mount["mount_point"]) == (str(source), str(place))
    assert shardfs("umount", place).returncode == 0
    assert not place.exists()


def test_a_missing_mount_point_is_made_and_removed(shardfs: Runner) -> None:
    place = shardfs.folder / "new"
    assert shardfs("mount", shardfs.source, place).returncode == 0
    assert (place / CAPTION).exists()
    assert shardfs("umount", place).returncode == 0
    assert not place.exists()


def test_the_service_manager_hears_when_it_is_ready(shardfs: Runner) -> None:
    address = shardfs.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(10)
        shardfs.env["NOTIFY_SOCKET"] = str(address)
        daemon = shardfs.start("mount", "-f", shardfs.source, shardfs.place)
        assert manager.recv(100) == b"READY=1"
    assert (shardfs.place / CAPTION).exists()
    daemon.terminate()
    assert daemon.communicate(timeout=5)[1] == ""
    assert daemon.returncode == 0


def test_the_helper_of_mount(shardfs: Runner) -> None:
    options = r"rw,noauto,nosuid,nodev,_netdev,x-systemd.automount,uid=12,file_mode=0400"
    run = shardfs(
        *(shardfs.source, shardfs.place, "-o", options, "-s"), program="mount.fuse.shardfs"
    )
    assert (run.returncode, run.stderr) == (0, "")
    found = (shardfs.place / CAPTION).stat()
    assert (found.st_uid, found.st_mode & 0o777) == (12, 0o400)


def test_the_password_is_nowhere_to_be_seen(shardfs: Runner) -> None:
    shardfs.env["SHARDFS_PASSWORD"] = "open-sesame"
    log = shardfs.folder / "log"
    run = shardfs("mount", "-vv", "--log-file", log, shardfs.source, shardfs.place)
    assert run.returncode == 0
    (pid,) = shardfs.daemons(shardfs.place)
    for file in (f"/proc/{pid}/environ", f"/proc/{pid}/cmdline", log):
        assert b"sesame" not in Path(file).read_bytes()
    assert "sesame" not in run.stderr


# --- failing -----------------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[Sequence[str], str]] = {
    "source missing": (["{folder}/none", "{mnt}"], "{folder}/none"),
    "source empty": (["{folder}/empty", "{mnt}"], "{folder}/empty"),
    "parent missing": (["{source}", "{folder}/no/mnt"], "{folder}/no/mnt"),
    "on a file": (["{source}", "{folder}/file"], "{folder}/file"),
    "below a file": (["{source}", "{folder}/file/mnt"], "{folder}/file/mnt"),
    "not empty": (["{source}", "{folder}/full"], "{folder}/full"),
    "inside the source": (["{source}", "{source}/mnt"], "{source}/mnt"),
    "over the source": (["{source}", "{folder}", "-o", "nonempty"], "{folder}"),
    "log file impossible": (["{source}", "{mnt}", "--log-file", "{folder}/file/log"], "file"),
    "password file missing": (["{source}", "{mnt}", "--password-file", "{folder}/no"], "no"),
}


@pytest.mark.parametrize("case", FAILURES)
@pytest.mark.parametrize("foreground", [False, True])
def test_failures_are_told_in_one_line(case: str, foreground: bool, shardfs: Runner) -> None:
    folder = shardfs.folder
    (folder / "empty").mkdir()
    (folder / "full" / "child").mkdir(parents=True)
    (folder / "file").touch()
    arguments, word = FAILURES[case]
    fill: Callable[[str], str] = lambda text: text.format(  # noqa: E731
        folder=folder, source=shardfs.source, mnt=shardfs.place
    )
    began = time.monotonic()
    run = shardfs("mount", *(["-f"] if foreground else []), *map(fill, arguments))
    assert time.monotonic() - began < 5
    assert run.returncode in (1, 2)
    assert is_one_line(run.stderr)
    assert fill(word) in run.stderr
    assert run.stdout == ""
    assert not shardfs.mounts(shardfs.place)
    assert not (folder / "no").exists()
    assert not (shardfs.source / "mnt").exists()


def test_what_failed_in_the_background_is_in_the_log_too(shardfs: Runner) -> None:
    log = shardfs.folder / "log"
    run = shardfs("mount", "--log-file", log, shardfs.folder / "none", shardfs.place)
    assert run.returncode != 0
    assert run.stderr.removeprefix("shardfs: ").strip() in log.read_text()


@needs_root
def test_a_system_that_forbids_mounting(shardfs: Runner) -> None:
    command = shardfs.command("mount", shardfs.source, shardfs.place)
    run = subprocess.run(
        ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", *command],
        capture_output=True,
        text=True,
        env=shardfs.env,
    )
    assert run.returncode == 2
    assert is_one_line(run.stderr)
    assert f"{shardfs.place}: mount failed: Operation not permitted (" in run.stderr
    assert "SYS_ADMIN" in run.stderr


def test_a_live_mount_is_not_mounted_again(shardfs: Runner) -> None:
    shardfs.mount()
    run = shardfs("mount", shardfs.source, shardfs.place)
    assert run.returncode == 2
    assert is_one_line(run.stderr)
    assert "already mounted" in run.stderr
    assert len(shardfs.mounts(shardfs.place)) == 1
    assert (shardfs.place / CAPTION).exists()


@pytest.mark.parametrize("line", ["--help", "--version", "version", "mount --help", "status"])
def test_help_needs_no_fuse(line: str, shardfs: Runner) -> None:
    program = (
        "import sys; sys.modules['pyfuse3'] = sys.modules['trio'] = None\n"
        f"from shardfs.cli.main import main; sys.exit(main({line.split()}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=shardfs.env
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_without_pyfuse3_the_word_is_what_to_install(shardfs: Runner) -> None:
    program = (
        "import sys; sys.modules['pyfuse3'] = None\n"
        "from shardfs.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "mount", str(shardfs.source), str(shardfs.place)]
    run = subprocess.run(command, capture_output=True, text=True, env=shardfs.env)
    assert run.returncode == 1
    assert is_one_line(run.stderr)
    assert "pyfuse3" in run.stderr


# --- ending ------------------------------------------------------------------------------------------------

STARTS = {
    "by hand": "exec {line} -f",
    "with &": "{line} -f & wait $!",
    "nohup": "nohup {line} -f",
    "background": "{line}",
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("start", STARTS)
def test_signals_unmount(start: str, number: signal.Signals, shardfs: Runner) -> None:
    log = shardfs.folder / "log"
    command = shardfs.command("mount", shardfs.source, shardfs.place, "--log-file", log)
    script = STARTS[start].format(line=shlex.join(command))
    # The shell ignores SIGINT for what it starts with &, nohup ignores SIGHUP: the daemon does not.
    shell = subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=shardfs.env,
    )
    assert shardfs.wait_until(lambda: (shardfs.place / CAPTION).exists(), 10)
    assert shardfs.wait_until(lambda: start != "background" or shell.poll() is not None)
    (pid,) = (pid for pid in shardfs.daemons(shardfs.place) if is_python(pid))
    os.kill(pid, number)
    assert shardfs.wait_until(lambda: not shardfs.mounts(shardfs.place), 2)
    assert shardfs.wait_until(lambda: is_gone(pid))
    printed = shell.communicate(timeout=5)[0]
    assert shell.returncode == 0
    assert "Traceback" not in printed + log.read_text()


def is_python(pid: int) -> bool:
    return "python" in os.readlink(f"/proc/{pid}/exe")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("delay", [0.05, 0.1, 0.15, 0.2, 0.3, 0.4])
@pytest.mark.parametrize("foreground", [True, False])
def test_signals_while_it_starts(
    foreground: bool, delay: float, number: signal.Signals, shardfs: Runner
) -> None:
    place = shardfs.folder / "new"
    run = shardfs.start("mount", *(["-f"] if foreground else []), shardfs.source, place)
    time.sleep(delay)
    run.send_signal(number)
    _, error = run.communicate(timeout=10)
    if run.returncode == 0 and not foreground:  # ready before the signal came
        assert shardfs("umount", place).returncode == 0
    assert run.returncode in (0, 128 + number, -number)
    assert shardfs.wait_until(lambda: not shardfs.daemons(place), 2)
    assert not shardfs.mounts(place)
    assert not place.exists()
    assert error == ""


@pytest.mark.parametrize("command", [["fusermount3", "-u"], ["umount"]])
def test_other_ways_to_unmount_end_the_daemon(command: list[str], shardfs: Runner) -> None:
    pid = shardfs.mount()
    subprocess.run([*command, shardfs.place], check=True)
    assert shardfs.wait_until(lambda: is_gone(pid))
    assert shardfs.status(shardfs.place) == []
    assert list((shardfs.folder / "run" / "shardfs").iterdir()) == []


def test_several_are_unmounted_at_once_and_failures_do_not_stop_it(shardfs: Runner) -> None:
    places = [shardfs.folder / name for name in ("one", "two")]
    for place in places:
        assert shardfs("mount", shardfs.source, place).returncode == 0
    run = shardfs("unmount", places[0], shardfs.place, places[1])
    assert run.returncode == 1
    assert run.stderr == f"shardfs: {shardfs.place} is not a mount point\n"
    assert not any(place.exists() for place in places)


def test_a_mount_in_use_is_busy_until_lazily_unmounted(shardfs: Runner) -> None:
    pid = shardfs.mount()
    with (shardfs.place / CAPTION).open("rb") as held:
        run = shardfs("umount", shardfs.place)
        assert run.returncode == 1
        assert is_one_line(run.stderr)
        assert "in use" in run.stderr
        assert shardfs.mounts(shardfs.place)
        assert shardfs("umount", "-l", shardfs.place).returncode == 0
        assert not shardfs.mounts(shardfs.place)
        assert held.read() == WORDS
    assert shardfs.wait_until(lambda: is_gone(pid))


def test_no_other_file_system_is_unmounted(shardfs: Runner) -> None:
    run = shardfs("umount", "/proc")
    assert run.returncode == 1
    assert run.stderr == "shardfs: /proc is not a shardfs mount but proc\n"
    assert shardfs.mounts(Path("/proc"))


# --- after a daemon was killed -----------------------------------------------------------------------------


def kill(shardfs: Runner, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    assert shardfs.wait_until(lambda: is_gone(pid))
    with pytest.raises(OSError, match=r"not connected|connection abort"):
        os.statvfs(shardfs.place)


def test_a_dead_mount_is_replaced(shardfs: Runner) -> None:
    kill(shardfs, shardfs.mount())
    shardfs.mount()
    assert (shardfs.place / CAPTION).read_bytes() == WORDS
    assert len(shardfs.mounts(shardfs.place)) == 1


def test_a_dead_mount_is_unmounted_even_when_in_use(shardfs: Runner) -> None:
    pid = shardfs.mount()
    held = os.open(shardfs.place / CAPTION, os.O_RDONLY)
    try:
        kill(shardfs, pid)
        assert shardfs.status(shardfs.place)[0]["state"] == "dead"
        run = shardfs("umount", shardfs.place)
        assert (run.returncode, run.stderr) == (0, "")
    finally:
        with contextlib.suppress(OSError):
            os.close(held)
    assert not shardfs.mounts(shardfs.place)
    assert shardfs.place.is_dir()


def test_a_folder_that_was_made_goes_with_its_dead_mount(shardfs: Runner) -> None:
    shardfs.place.rmdir()
    kill(shardfs, shardfs.mount())
    kill(shardfs, shardfs.mount())
    assert shardfs("umount", shardfs.place).returncode == 0
    assert not shardfs.place.exists()


# --- status ------------------------------------------------------------------------------------------------


def test_status_and_umount_tell_of_faults(shardfs: Runner) -> None:
    shardfs.place_source(DATA / "litdata" / "damaged" / "zstd_flipped")
    pid = shardfs.mount()
    (mount,) = shardfs.status(shardfs.place)
    assert (mount["pid"], mount["state"]) == (pid, "running")
    assert mount["faults"] == {"count": 0, "last": None}
    before = mount["requests"]
    with pytest.raises(OSError, match="Input/output error"):
        os.listdir(shardfs.place / "chunk-0-1/000000")
    (mount,) = shardfs.status(shardfs.place)
    assert mount["faults"]["count"] == 1
    assert "chunk-0-1" in mount["faults"]["last"]["message"]
    assert mount["requests"] > before
    assert 0 <= mount["uptime"] < 60
    assert "faults  1, the last: chunk-0-1" in shardfs("status").stdout
    run = shardfs("umount", shardfs.place)
    assert run.returncode == 0
    assert f"{shardfs.place}: faults met: 1, the last: chunk-0-1" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert list((shardfs.folder / "run" / "shardfs").iterdir()) == []


def test_the_daemon_keeps_a_log(shardfs: Runner) -> None:
    pid = shardfs.mount()
    (mount,) = shardfs.status(shardfs.place)
    log = shardfs.folder / ".local/state/shardfs/shardfs.log"
    assert mount["log"] == str(log)
    assert shardfs("umount", shardfs.place).returncode == 0
    lines = log.read_text().splitlines()
    assert f"{pid} INFO shardfs:{shardfs.source} is mounted on {shardfs.place}" in lines[0]
    assert f"{pid} INFO {shardfs.place} is unmounted" in lines[-1]


def test_a_mount_without_a_log_is_a_mount(shardfs: Runner) -> None:
    (shardfs.folder / ".local").write_text("a file")
    run = shardfs("mount", shardfs.source, shardfs.place)
    assert run.returncode == 0
    assert is_one_line(run.stderr)
    assert "no log is kept" in run.stderr
    assert (shardfs.place / CAPTION).read_bytes() == WORDS


def on_terminal(shardfs: Runner, *arguments: object) -> str:
    """What a terminal shows of a command."""
    command = shlex.join(shardfs.command(*arguments))
    run = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        env=shardfs.env,
    )
    return run.stdout.replace("\r\n", "\n")


@pytest.mark.skipif(shutil.which("script") is None, reason="needs script (util-linux)")
def test_a_terminal_is_told_what_is_there(shardfs: Runner) -> None:
    said = on_terminal(shardfs, "mount", shardfs.source, shardfs.place)
    assert said == f"shardfs: LitData, 2 shards, 14 records on {shardfs.place}\n"
    assert (shardfs.place / CAPTION).read_bytes() == WORDS
    assert shardfs("umount", shardfs.place).returncode == 0
    assert on_terminal(shardfs, "mount", "-q", shardfs.source, shardfs.place) == ""


def test_a_source_without_a_dataset_is_a_warning(shardfs: Runner) -> None:
    folder = shardfs.folder / "documents"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.md", "deep/b.md"):
        (folder / name).write_text("text")
    run = shardfs("mount", folder, shardfs.place)
    assert run.returncode == 0
    assert run.stderr == f"shardfs: {folder}: no dataset here; 2 files pass through\n"
    assert (shardfs.place / "deep/b.md").read_text() == "text"


@pytest.mark.parametrize(
    "options",
    [["--columns", "imgae"], ["--split", "x"], ["-o", "config=x"], ["--key-file", "/none"]],
)
def test_what_names_nothing_is_refused_and_nothing_mounted(
    shardfs: Runner, options: list[str]
) -> None:
    run = shardfs("mount", shardfs.source, shardfs.place, *options)
    assert run.returncode == 2
    assert is_one_line(run.stderr)
    assert shardfs.mounts(shardfs.place) == []
    assert shardfs.daemons(shardfs.place) == []


def test_status_does_not_wait_for_a_stopped_daemon(shardfs: Runner) -> None:
    pid = shardfs.mount()
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        run = shardfs("status")
        assert time.monotonic() - began < 1
        assert f"{shardfs.place}\n" in run.stdout
        assert f"daemon  {pid}" in run.stdout
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (shardfs.place / CAPTION).read_bytes() == WORDS


# --- read-only ---------------------------------------------------------------------------------------------

WRITES: dict[str, Callable[[Path], object]] = {
    "touch": lambda m: (m / "new").touch(),
    "mkdir": lambda m: (m / "new").mkdir(),
    "write": lambda m: (m / CAPTION).open("r+b"),
    "append": lambda m: (m / CAPTION).open("ab"),
    "mv": lambda m: (m / CAPTION).rename(m / "new"),
    "rm": lambda m: (m / CAPTION).unlink(),
    "rmdir": lambda m: (m / "chunk-0-0").rmdir(),
    "chmod": lambda m: (m / CAPTION).chmod(0o777),
    "chown": lambda m: os.chown(m / CAPTION, 1, 1),
    "utime": lambda m: os.utime(m / CAPTION, (0, 0)),
    "truncate": lambda m: os.truncate(m / CAPTION, 0),
    "symlink": lambda m: (m / "new").symlink_to("x"),
    "link": lambda m: (m / "new").hardlink_to(m / CAPTION),
    "setxattr": lambda m: os.setxattr(m / CAPTION, "user.x", b"y"),
}


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_mode)
        for path in [folder, *folder.rglob("*")]
    }


def test_nothing_can_be_written_and_the_source_is_never_touched(shardfs: Runner) -> None:
    before = snapshot(shardfs.source)
    shardfs.mount()
    for name, write in WRITES.items():
        with pytest.raises(OSError, match="Read-only") as error:
            write(shardfs.place)
        assert error.value.errno == errno.EROFS, name
    assert read_all(shardfs.place) > 40
    assert shardfs("umount", shardfs.place).returncode == 0
    assert snapshot(shardfs.source) == before


def read_all(folder: Path) -> int:
    """The number of files, all of which could be read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert all(len(path.read_bytes()) == path.stat().st_size for path in files)
    return len(files)


@needs_root
def test_a_source_that_is_mounted_read_only(shardfs: Runner) -> None:
    subprocess.run(["mount", "--bind", "-r", shardfs.source, shardfs.source], check=True)
    shardfs.mount()
    assert read_all(shardfs.place) > 40


@needs_root
def test_a_cache_folder_that_is_full(shardfs: Runner) -> None:
    cache = shardfs.folder / "full"
    cache.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "none", cache], check=True)
    with contextlib.suppress(OSError), (cache / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    source = DATA / "mds" / "comp_zstd_level"
    run = shardfs("mount", source, shardfs.place, "--cache-dir", cache)
    assert (run.returncode, run.stderr) == (0, "")
    assert read_all(shardfs.place) > 10
    (pid,) = shardfs.daemons(shardfs.place)
    assert not is_gone(pid)
    assert [path.name for path in cache.rglob("*") if path.is_file()] == ["filler"]


@pytest.mark.parametrize("option", ["--no-disk-cache", "--cache-dir={folder}/elsewhere", ""])
def test_a_home_that_cannot_be_written(option: str, shardfs: Runner) -> None:
    nowhere = "/proc/nowhere"  # where not even root can make a folder
    shardfs.env.update(HOME=nowhere, XDG_CACHE_HOME=nowhere, XDG_RUNTIME_DIR=nowhere)
    shardfs.env["TMPDIR"] = str(shardfs.folder)
    where = filter(None, [option.format(folder=shardfs.folder)])
    run = shardfs("mount", shardfs.source, shardfs.place, *where)
    assert run.returncode == 0
    assert is_one_line(run.stderr)
    assert "no log is kept" in run.stderr
    assert (shardfs.place / CAPTION).read_bytes() == WORDS


# --- as an ordinary user -----------------------------------------------------------------------------------

# In a mount namespace of its own, with a device that everybody may open: the machine's stays as it is. The one
# capability lets it read a Python that is installed in root's home.
AS_USER = """
set -e
mknod -m 666 {folder}/fuse c 10 229
mount --bind {folder}/fuse /dev/fuse
mount -t tmpfs -o uid=65534,mode=700 none {folder}/mnt
mkdir -m 777 {folder}/mnt/m
install -d -m 700 -o 65534 {folder}/mnt/home
exec setpriv --reuid=65534 --regid=65534 --clear-groups \
    --inh-caps=+dac_read_search --ambient-caps=+dac_read_search \
    env -i PATH={path} HOME={folder}/mnt/home TMPDIR={folder}/mnt/home /bin/sh -c {script}
"""


def as_user(shardfs: Runner, script: str, path: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become an ordinary user")
    folder = shardfs.folder
    place = folder
    while place != place.parent:  # pytest's folders are the user's own
        with contextlib.suppress(OSError):
            place.chmod(place.stat().st_mode | 0o011)
        place = place.parent
    text = AS_USER.format(folder=folder, path=path, script=shlex.quote(script))
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", text], capture_output=True, text=True, timeout=30
    )


def test_an_ordinary_user(shardfs: Runner) -> None:
    line = shlex.join(shardfs.command("mount", shardfs.source, shardfs.place / "m"))
    again = shlex.join(shardfs.command("umount", shardfs.place / "m"))
    killed = 'kill -9 $(basename "$TMPDIR"/shardfs-65534/*.json .json) && sleep 0.2'
    script = (
        f"{line} && cat {shardfs.place}/m/{CAPTION} && echo && {killed} && {line} && stat -c %U%A"
        f" {shardfs.place}/m/{CAPTION} && {again} && ls {shardfs.place}/m"
    )
    run = as_user(shardfs, script, os.environ["PATH"])
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"{WORDS.decode()}\nnobody-r--r--r--\n"


def test_an_ordinary_user_without_fusermount3(shardfs: Runner) -> None:
    line = shlex.join(shardfs.command("mount", shardfs.source, shardfs.place / "m"))
    run = as_user(shardfs, line, str(shardfs.scripts))
    assert run.returncode == 2
    assert is_one_line(run.stderr)
    assert "fusermount3" in run.stderr


def test_an_ordinary_user_cannot_let_others_in_unasked(shardfs: Runner) -> None:
    if "\nuser_allow_other" in Path("/etc/fuse.conf").read_text():
        pytest.skip("/etc/fuse.conf lets ordinary users do that here")
    line = shlex.join(
        shardfs.command("mount", "--allow-other", shardfs.source, shardfs.place / "m")
    )
    run = as_user(shardfs, line, os.environ["PATH"])
    assert run.returncode == 2
    assert is_one_line(run.stderr)
    assert "user_allow_other" in run.stderr
