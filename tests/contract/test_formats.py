from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shardfs.formats.arrow.dataset import Arrow
from shardfs.formats.litdata.dataset import LitData
from shardfs.formats.mds.dataset import Mds
from shardfs.formats.parquet.dataset import Parquet
from shardfs.formats.parquet.litdata import LitDataParquet
from shardfs.formats.text.csv import Csv
from shardfs.formats.text.jsonl import Json, Jsonl
from shardfs.formats.text.lines import Text
from shardfs.formats.webdataset.dataset import WebDataset
from shardfs.registry import FORMATS, load
from tests import DATA
from tests.contract.formats import FormatContract

if TYPE_CHECKING:
    from pathlib import Path

LITDATA = [
    "plain_dict",
    "all_serializers_v0273",
    "nested_mixed",
    "multi_worker",
    "many_tiny",
    "zstd_batch",
    "zstd_sample",
    "zstd_chunk_v0255",
    "arrow_rows",
    "arrow_rows_zstd",
    "tokens_uint16_zstd",
    "pil_modes",
    "empties",
]
MDS = [
    "all_encodings",
    "comp_zstd",
    "comp_gz",
    "json_plain",
    "csv_plain",
    "var_only",
    "many_records",
]
WEBDATASET = [
    "dirs-links-specials",
    "energon/shards",
    "gnu-sparse",
    "gz-multimember",
    "interleaved-by-extension",
    "json-sidecar",
    "nested-dir-keys",
    "wids-index",
    "zst-multi-frame",
]


def test_no_format_lacks_the_contract() -> None:
    """A new row of the registry needs a subclass here, with a folder that its own library wrote."""
    held = {contract.format for contract in FormatContract.__subclasses__()}
    assert {load("formats", row) for row in FORMATS} == held


class TestLitData(FormatContract):
    format = LitData

    @pytest.fixture(params=LITDATA)
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "litdata" / str(request.param)


class TestMds(FormatContract):
    format = Mds

    @pytest.fixture(params=MDS)
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "mds" / str(request.param)


class TestArrow(FormatContract):
    format = Arrow

    @pytest.fixture(params=["disk_dataset", "disk_shuffle_select", "ipc_feather"])
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "huggingface" / str(request.param)


class TestParquet(FormatContract):
    format = Parquet

    @pytest.fixture(params=["images_hf", "nested", "arrays", "scalars_nulls", "dictionary"])
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "huggingface" / f"parquet_{request.param}"


class TestLitDataParquet(FormatContract):
    format = LitDataParquet

    @pytest.fixture
    def source(self) -> Path:
        return DATA / "litdata" / "parquet_index"


class TestWebDataset(FormatContract):
    format = WebDataset

    @pytest.fixture(params=WEBDATASET)
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "webdataset" / str(request.param)


class TestJsonl(FormatContract):
    format = Jsonl

    @pytest.fixture(params=["jsonl_plain", "jsonl_compressed"])
    def source(self, request: pytest.FixtureRequest) -> Path:
        return DATA / "huggingface" / str(request.param)


class TestJson(FormatContract):
    format = Json

    @pytest.fixture
    def source(self) -> Path:
        return DATA / "huggingface" / "json_documents"


class TestCsv(FormatContract):
    format = Csv

    @pytest.fixture
    def source(self) -> Path:
        return DATA / "huggingface" / "csv_quotes"


class TestText(FormatContract):
    format = Text

    @pytest.fixture
    def source(self) -> Path:
        return DATA / "huggingface" / "text_lines"
