"""Small files of several formats, and the sniffing of whole contents."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from PIL import Image

from shardfs.views.signatures import HEAD
from shardfs.views.sniff import extension


def sniff(data: bytes, declared: str = "", filename: str = "") -> str:
    return extension(data[:HEAD], len(data), declared, filename)


def picture(form: str, mode: str = "RGB", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((64, 48), 60).convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


def zipped(*names: str, stored: bytes = b"x") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, stored)
    return buffer.getvalue()
