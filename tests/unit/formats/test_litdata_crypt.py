from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from shardfs.blob import Bytes, no_wait, read_all
from shardfs.errors import MissingPackage, NoKey, Unsupported, WouldBlock
from shardfs.formats.litdata.crypt import Cipher
from shardfs.options import Options

if TYPE_CHECKING:
    from pathlib import Path

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OAEP = padding.OAEP(mgf=padding.MGF1(algorithm=SHA256()), algorithm=SHA256(), label=None)
TOKEN = KEY.public_key().encrypt(b"plain", OAEP)


def decrypted(cipher: Cipher, token: bytes) -> bytes:
    return bytes(read_all(cipher.decrypt(Bytes(token))))


def key_file(
    folder: Path, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, password: str, stored: str
) -> Path:
    """As RSAEncryption.save writes it."""
    lock: KeySerializationEncryption = NoEncryption()
    if password:
        lock = BestAvailableEncryption(password.encode())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, lock)
    state = {"private_key": pem.decode(), "public_key": "", "password": stored, "level": "sample"}
    path = folder / "rsa.json"
    path.write_text(json.dumps(state))
    return path


@pytest.mark.parametrize(
    ("password", "stored", "given"),
    [
        ("", "", "needless"),
        ("", "", None),
        ("secret", "secret", None),
        ("secret", "", "secret"),
        ("secret", "x", "secret"),
    ],
)
def test_rsa(tmp_path: Path, password: str, stored: str, given: str | None) -> None:
    file = key_file(tmp_path, KEY, password, stored)
    assert decrypted(Cipher("rsa", Options(key_file=file, password=given)), TOKEN) == b"plain"


def test_a_wrong_password_of_a_private_key(tmp_path: Path) -> None:
    file = key_file(tmp_path, KEY, "secret", "")
    for given, words in ((None, "the password is missing"), ("wrong", "password .* is wrong")):
        with pytest.raises(NoKey, match=words):
            decrypted(Cipher("rsa", Options(key_file=file, password=given)), TOKEN)


def test_another_key_than_the_one_that_encrypted(tmp_path: Path) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    cipher = Cipher("rsa", Options(key_file=key_file(tmp_path, other, "", "")))
    for token in (TOKEN, b"", TOKEN[:-1], bytes(256)):
        with pytest.raises(NoKey, match="the key file is wrong"):
            decrypted(cipher, token)


def test_a_key_of_another_algorithm(tmp_path: Path) -> None:
    file = key_file(tmp_path, ec.generate_private_key(ec.SECP256R1()), "", "")
    with pytest.raises(NoKey, match="no RSA key"):
        decrypted(Cipher("rsa", Options(key_file=file)), TOKEN)


@pytest.mark.parametrize("algorithm", ["fernet", "rsa"])
@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"salt": 5, "private_key": 5}', b'{"salt": "\xff"}']
)
def test_a_key_file_that_is_none(tmp_path: Path, algorithm: str, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(NoKey, match="is no key file of LitData"):
        decrypted(Cipher(algorithm, Options(key_file=file, password="x")), TOKEN)


def test_a_key_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoKey, match="can't be read: No such file"):
        decrypted(Cipher("rsa", Options(key_file=tmp_path / "none")), TOKEN)


def test_without_a_key_the_message_says_where_to_give_it() -> None:
    with pytest.raises(NoKey, match=r"SHARDFS_PASSWORD or --password-file.*--key-file"):
        decrypted(Cipher("fernet", Options()), TOKEN)
    for algorithm in ("fernet", "rsa"):
        with pytest.raises(NoKey, match="the key file is missing: --key-file"):
            decrypted(Cipher(algorithm, Options(password="x")), TOKEN)


def test_a_private_key_that_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text('{"private_key": "-----BEGIN RSA PRIVATE KEY-----\\nAAAA"}')
    with pytest.raises(NoKey, match="the private key in the key file can't be read"):
        decrypted(Cipher("rsa", Options(key_file=file, password="x")), TOKEN)


def test_fernet_needs_the_password_too(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(json.dumps({"salt": base64.urlsafe_b64encode(bytes(16)).decode()}))
    with pytest.raises(NoKey, match="SHARDFS_PASSWORD"):
        decrypted(Cipher("fernet", Options(key_file=file)), TOKEN)


def test_a_wrong_password_and_damage_look_alike_to_fernet(tmp_path: Path) -> None:
    file, salt = tmp_path / "key", bytes(16)
    file.write_text(json.dumps({"salt": base64.urlsafe_b64encode(salt).decode()}))
    key = hashlib.pbkdf2_hmac("sha256", b"secret", salt, 480_000)
    token = Fernet(base64.urlsafe_b64encode(key)).encrypt(b"plain")
    right, wrong = (Cipher("fernet", Options(key_file=file, password=p)) for p in ("secret", "x"))
    assert decrypted(right, token) == b"plain"
    for cipher, data in ((wrong, token), (right, token[:-8]), (right, token[:40] + b"A" * 60)):
        with pytest.raises(NoKey, match="the password or the key file is wrong, or the encrypted"):
            decrypted(cipher, data)


def test_who_may_not_wait_decrypts_nothing(tmp_path: Path) -> None:
    cipher = Cipher("rsa", Options(key_file=key_file(tmp_path, KEY, "", "")))
    with no_wait(), pytest.raises(WouldBlock):
        decrypted(cipher, TOKEN)


def test_an_unknown_algorithm_is_unsupported() -> None:
    with pytest.raises(Unsupported, match='"rot13"'):
        Cipher("rot13", Options())


def test_the_package_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(json.dumps({"salt": "AAAA"}))
    monkeypatch.setitem(
        __import__("sys").modules, "cryptography.hazmat.primitives.kdf.pbkdf2", None
    )
    with pytest.raises(MissingPackage, match=r"shardfs\[crypt\]"):
        decrypted(Cipher("fernet", Options(key_file=file, password="x")), TOKEN)
