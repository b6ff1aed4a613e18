"""Options that name something must name something that is there: else the user is told what there is."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

from shardfs.errors import Unsupported, UsageError
from shardfs.options import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from shardfs.errors import ShardfsError
    from shardfs.options import Options
    from shardfs.tree.choice import Choice
    from shardfs.tree.survey import Survey

# Datasets that are asked for their fields; names shown in a message. Guesses.
_MOST_DATASETS, _MOST_NAMES = 64, 30


def check_splits(
    survey: Survey, choice: Choice, options: Options, report: Callable[[ShardfsError], None]
) -> None:
    """See that there are the config and split that *options* name, looking no further than needed.

    What lies too far away to be seen in a moment may have them; then it is only told, by *report*.

    Raises:
        UsageError: there are not, and what there is.
    """
    if options.config or options.split:
        _refuse(_splits(survey, choice, options), survey, report)


def check_options(survey: Survey, options: Options, report: Callable[[ShardfsError], None]) -> None:
    """See that all else is there that *options* name; as ``check_splits``.

    Raises:
        UsageError: it is not, and what there is; or encrypted data can't be read with what the user gave.
    """
    if options.layout not in get_args(Layout):
        raise UsageError(_lack("--layout", [options.layout], get_args(Layout), "layout"))
    _refuse(_columns(survey, options), survey, report)
    _refuse(_keys(survey, options), survey, report)


def _refuse(problem: str, survey: Survey, report: Callable[[ShardfsError], None]) -> None:
    if problem and survey.complete:
        raise UsageError(problem)
    if problem:
        report(Unsupported(f"{problem}, as far as was looked"))


def _splits(survey: Survey, choice: Choice, options: Options) -> str:
    """What is wrong with --config and --split, "" where nothing is."""
    if not options.splits:
        given = "--split" if options.split else "--config"
        raise UsageError(f"{given} chooses among splits, and --no-splits shows none")
    survey.look(lambda: choice.found)
    if choice.found:
        return ""
    configs = list(dict.fromkeys(config for config, _ in choice.met if config))
    if options.config and options.config not in configs:
        return _lack("--config", [options.config], configs, "config")
    splits = [split for config, split in choice.met if options.config in ("", config)]
    return _lack("--split", [options.split], dict.fromkeys(splits), "split")


def _columns(survey: Survey, options: Options) -> str:
    """What is wrong with --columns, "" where nothing is."""
    if not options.columns:
        return ""
    missing, there = dict.fromkeys(options.columns), dict[str, None]()
    unknown, seen = False, 0

    def is_enough() -> bool:
        nonlocal seen, unknown
        for known in survey.datasets[seen:_MOST_DATASETS]:
            seen += 1
            told = False
            for names in survey.field_names(known):
                told = True
                there.update(dict.fromkeys(names))
                for name in names:
                    missing.pop(name, None)
                if not missing:
                    return True
            unknown |= not told and bool(known.dataset.shards)
        return seen == _MOST_DATASETS

    survey.look(is_enough)
    is_enough()
    if not missing or unknown:  # what can't be read has other words to say
        return ""
    return _lack("--columns", missing, there, "field")


def _keys(survey: Survey, options: Options) -> str:
    """What is wrong with password and key, "" where nothing is."""
    given = options.key_file is not None or options.password_file is not None
    if options.key_file is not None:
        _check_readable(options.key_file)
    if given:
        survey.look(lambda: any(map(survey.is_encrypted, survey.datasets)))
    datasets = survey.datasets
    locked = [survey.locked(known) for known in datasets if survey.is_encrypted(known)]
    if locked and locked[0] and all(locked) and len(locked) == len(datasets):
        raise UsageError(locked[0].message).at(datasets[0].url.removeprefix("file://"))
    if given and not locked:
        option = "--key-file" if options.key_file is not None else "--password-file"
        return f"{option}: nothing here is encrypted"
    return ""


def _check_readable(key: Path) -> None:
    try:
        key.open("rb").close()
    except OSError as error:
        raise UsageError(f"--key-file {key}: {error.strerror}") from error


def _lack(option: str, wanted: Iterable[str], there: Iterable[str], what: str) -> str:
    """That *wanted* are not *there*, in one line."""
    wanted, there = list(wanted), list(there)
    names = ", ".join(wanted)
    if not there:
        return f"{option} {names}: there are no {what}s here"
    shown = ", ".join(there[:_MOST_NAMES])
    more = f" and {len(there) - _MOST_NAMES} more" if len(there) > _MOST_NAMES else ""
    close = [get_close_matches(name, there, n=1) for name in wanted]
    meant = ", ".join(match[0] for match in close if match)
    hint = f"; did you mean {meant}?" if meant else ""
    are = f"there are {shown}{more}" if len(there) > 1 else f"there is {shown}"
    return f"{option} {names}: no such {what}{'s' if len(wanted) > 1 else ''}; {are}{hint}"
