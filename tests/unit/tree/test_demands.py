"""Options that name nothing are refused, for every format, with what there is."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from pyarrow import feather, parquet

from shardfs.errors import UsageError
from shardfs.mounting import open_tree
from shardfs.options import Options
from shardfs.tree import survey
from tests import DATA
from tests.litdata_files import chunk, index, record
from tests.unit.formats.test_litdata_crypt import KEY, OAEP, key_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from shardfs.tree.tree import Tree


def tree(source: object, **options: Any) -> Tree:
    return open_tree(str(source), Options(disk_cache=False, **options))


def refusal(source: object, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        tree(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def tar(*members: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in members:
            archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


TABLE = pa.table({"image": [b"\xff\xd8"], "caption": ["a"]})


def _parquet(path: Path) -> None:
    parquet.write_table(TABLE, path / "a.parquet")


def _arrow(path: Path) -> None:
    feather.write_feather(TABLE, str(path / "a.arrow"))


def _jsonl(path: Path) -> None:
    (path / "a.jsonl").write_text('{"image": 1}\n{"caption": 2}\n')


def _csv(path: Path) -> None:
    (path / "a.csv").write_text("image,caption\n1,2\n")


def _tar(path: Path) -> None:
    (path / "a.tar").write_bytes(tar("0.image", "1.caption"))


def _packed(path: Path) -> None:
    (path / "a.tar.gz").write_bytes(gzip.compress(tar("0.image", "0.caption")))


@pytest.mark.parametrize("make", [_parquet, _arrow, _jsonl, _csv, _tar, _packed])
def test_columns_that_are_not_there_are_refused(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    for source in (tmp_path, next(tmp_path.iterdir())):
        said = refusal(source, columns=("imgae", "caption"))
        assert said.startswith("--columns imgae: no such field; there are ")
        assert "image" in said
        assert "caption" in said
        assert said.endswith("did you mean image?")
        tree(source, columns=("caption",)).close()
        tree(source, columns=("caption", "image")).close()
        assert "there are no splits here" in refusal(source, split="train")
        assert "there are no configs here" in refusal(source, config="train")
        assert "nothing here is encrypted" in refusal(source, key_file=DATA / "README.md")
        assert "nothing here is encrypted" in refusal(
            source, password="x", password_file=DATA / "README.md"
        )
        tree(source, password="x").close()  # of the environment, which may be meant for another


@pytest.mark.parametrize("case", ["litdata/plain_dict", "mds/plain"])
def test_columns_of_an_index_are_checked_without_a_look_at_a_shard(
    case: str, tmp_path: Path
) -> None:
    (tmp_path / "index.json").write_bytes((DATA / case / "index.json").read_bytes())
    assert "no such field" in refusal(tmp_path, columns=("imgae",))
    assert "there are no splits here" in refusal(tmp_path, split="train")


def test_a_column_of_any_dataset_or_shard_will_do(tmp_path: Path) -> None:
    for name, field in (("a", "one"), ("b", "two"), ("c/d", "three")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.csv").write_text(f"{field}\n1\n")
    (tmp_path / "y.csv").write_text("four\n1\n")
    (tmp_path / "z.csv").write_text("five\n1\n")
    for name in ("one", "two", "three", "four", "five"):
        tree(tmp_path, columns=(name,)).close()
    assert "there are four, five, one, two, three" in refusal(tmp_path, columns=("none",))


def test_the_first_records_of_an_archive_tell_its_fields(tmp_path: Path) -> None:
    late = [f"{number:04d}.txt" for number in range(1000)]
    (tmp_path / "a.tar").write_bytes(tar(*late, "1000.rare"))
    assert "there is txt" in refusal(tmp_path, columns=("rare",))


def test_what_can_not_be_read_is_no_reason_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    tree(tmp_path, columns=("image",)).close()


def test_what_lies_too_far_away_is_only_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.csv").write_text(f"f{number}\n1\n")
    bounds = {"most": 3, "seconds": 9, "report": False, "archives": True}
    monkeypatch.setattr(survey.Survey.look, "__kwdefaults__", bounds)
    tree(tmp_path, columns=("f4",)).close()
    assert "--columns f4: no such field; there are f0, f1" in caplog.text
    assert "as far as was looked" in caplog.text


def test_a_long_list_of_fields_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",".join(f"c{n}" for n in range(500)) + "\n" + "," * 499)
    said = refusal(tmp_path, columns=("x",))
    assert "and 470 more" in said
    assert len(said) < 400


# --- splits ------------------------------------------------------------------------------------------------

README = b"""---
configs:
- config_name: en
  data_files: {train: a.csv, dev: b.csv}
- config_name: de
  data_files: c.csv
---
"""


def folder(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


CSV = b"a\n1\n"
DECLARED = {"README.md": README, "a.csv": CSV, "b.csv": CSV, "c.csv": CSV}


def test_splits_that_a_readme_does_not_declare_are_refused(tmp_path: Path) -> None:
    folder(tmp_path, DECLARED)
    assert refusal(tmp_path, split="tset") == "--split tset: no such split; there are train, dev"
    assert "there are en, de" in refusal(tmp_path, config="fr")
    assert "--split dev: no such split; there is train" in refusal(
        tmp_path, config="de", split="dev"
    )
    assert "--no-splits" in refusal(tmp_path, split="dev", splits=False)
    tree(tmp_path, split="dev").close()


def test_the_split_of_one_of_several_repositories_will_do(tmp_path: Path) -> None:
    folder(tmp_path, {f"one/{name}": content for name, content in DECLARED.items()})
    folder(tmp_path, {"two/train.csv": CSV, "two/README.md": README.replace(b"b.csv", b"none.csv")})
    shown = tree(tmp_path, split="dev")
    assert [node.name for node in (shown.root / "one").children()][:1] == ["dev"]
    assert [n.name for n in (shown.root / "two").children()] == ["train", "README.md"]
    shown.close()
    assert "there are train, dev" in refusal(tmp_path, split="none")


@pytest.mark.parametrize("kind", ["litdata/plain_dict", "mds/plain"])
def test_folders_with_an_index_are_splits(kind: str, tmp_path: Path) -> None:
    index = (DATA / kind / "index.json").read_bytes()
    folder(tmp_path, {"first/index.json": index, "held/index.json": index, "notes/x.md": b"x"})
    assert "there are first, held" in refusal(tmp_path, split="third")
    assert [n.name for n in tree(tmp_path, split="held").root.children()] == ["held", "notes"]
    assert [n.name for n in tree(tmp_path).root.children()] == ["first", "held", "notes"]
    assert "there are no configs" in refusal(tmp_path, config="held")


def test_folders_that_are_called_as_splits_are_splits(tmp_path: Path) -> None:
    folder(
        tmp_path, {"train/a.csv": CSV, "val/a.csv": CSV, "val/deep/x.csv": CSV, "docs/a.md": b"x"}
    )
    shown = tree(tmp_path, split="val")
    assert [node.name for node in shown.root.children()] == ["docs", "val"]
    assert [node.name for node in (shown.root / "val").children()] == ["a", "deep"]
    shown.close()
    assert "there are train, val" in refusal(tmp_path, split="test")


def test_the_splits_of_a_saved_dataset_dict_can_be_chosen(tmp_path: Path) -> None:
    folder(
        tmp_path, {"dataset_dict.json": b'{"splits": ["x", "y"]}', "x/a.csv": CSV, "y/a.csv": CSV}
    )
    assert [n.name for n in tree(tmp_path, split="y").root.children()] == ["y", "dataset_dict.json"]
    assert "there are x, y" in refusal(tmp_path, split="z")


# --- keys --------------------------------------------------------------------------------------------------


def test_a_key_file_that_is_not_there_is_refused_whatever_the_source(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    said = refusal(tmp_path, key_file=tmp_path / "none")
    assert said == f"--key-file {tmp_path / 'none'}: No such file or directory"


@pytest.mark.parametrize("case", ["encrypted_fernet_sample", "encrypted_fernet_chunk"])
def test_an_encrypted_dataset_needs_the_right_password_and_key(case: str, tmp_path: Path) -> None:
    source = DATA / "litdata" / case
    truth = json.loads((DATA / "litdata" / f"{case}.truth.json").read_text())
    key, password = DATA / "litdata" / f"{case}.key.json", truth["password"]
    said = refusal(source)
    assert "encrypted (fernet), and password and key file are missing" in said
    assert said.startswith(str(source))
    assert "password is missing" in refusal(source, key_file=key)
    assert "key file is missing" in refusal(source, password=password)
    assert "password or the key file is wrong" in refusal(source, key_file=key, password="x")
    (tmp_path / "salt").write_text('{"salt": "AAAAAAAAAAAAAAAAAAAAAA=="}')
    wrong_salt = {"key_file": tmp_path / "salt", "password": password}
    assert "password or the key file is wrong" in refusal(source, **wrong_salt)
    tree(source, key_file=key, password=password).close()


def test_one_damaged_record_does_not_make_a_key_wrong(tmp_path: Path) -> None:
    source = shutil.copytree(DATA / "litdata" / "encrypted_fernet_sample", tmp_path / "d")
    file = source / "chunk-0-0.bin"
    data = bytearray(file.read_bytes())
    first = int.from_bytes(data[4:8], "little")
    data[first + 40] ^= 1
    file.write_bytes(data)
    key = {"key_file": DATA / "litdata" / "encrypted_fernet_sample.key.json"}
    tree(source, password="corpus-password", **key).close()
    refusal(source, password="wrong", **key)


def test_an_rsa_key(tmp_path: Path) -> None:
    right, wrong = key_file(tmp_path, KEY, "", ""), tmp_path / "wrong"
    wrong.mkdir()
    other = key_file(wrong, rsa.generate_private_key(public_exponent=65537, key_size=2048), "", "")
    source = tmp_path / "data"
    stored = KEY.public_key().encrypt(record(b"a", b"b"), OAEP)
    config = {"data_format": ["str", "str"], "encryption": {"algorithm": "rsa", "level": "sample"}}
    chunks = {"filename": "chunk-0-0.bin", "chunk_size": 1, "chunk_bytes": 0, "dim": None}
    folder(source, {"index.json": index(chunks, **config), "chunk-0-0.bin": chunk(stored)})
    assert "key file is missing" in refusal(source)
    assert "key file is wrong" in refusal(source, key_file=other)
    tree(source, key_file=right).close()


def test_one_locked_dataset_among_others_does_not_stop_a_mount(tmp_path: Path) -> None:
    shutil.copytree(DATA / "litdata" / "encrypted_fernet_sample", tmp_path / "locked")
    (tmp_path / "a.csv").write_bytes(CSV)
    tree(tmp_path).close()


def test_only_a_repository_has_revisions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    assert "--revision" in refusal(tmp_path, revision="v2")


def test_a_layout_that_is_none_is_refused_in_python_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    assert refusal(tmp_path, layout="falt").endswith("did you mean flat?")
