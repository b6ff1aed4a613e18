"""Decryption of LitData's chunks and records.

Source: ``litdata/utilities/encryption.py`` 0.2.76. The keys are in no dataset: a Fernet key comes from a password and
a salt in a file that the writer saved, an RSA key from such a file, where it may be locked with the password.
"""

from __future__ import annotations

import base64
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from shardfs.blob import Bytes, may_wait, read_all
from shardfs.errors import MissingPackage, NoKey, ShardfsError, Unsupported, WouldBlock
from shardfs.formats.litdata.fernet import Fernet, WrongToken
from shardfs.formats.shared.jsontext import member, optional, parse_object, shown
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob
    from shardfs.options import Options

_ITERATIONS = 480_000
_PASSWORD = "SHARDFS_PASSWORD or --password-file gives it"
_KEY = "--key-file FILE gives it, the file that the writer saved"


class Decrypt(Protocol):
    """Makes plain bytes of an encrypted chunk or record, which is found to be right before."""

    def __call__(self, token: Blob, /) -> Blob: ...


class Cipher:
    """Decrypts with the key that the user gave, which is made ready at the first use: that takes a while."""

    def __init__(self, algorithm: str, options: Options) -> None:
        if algorithm not in _ALGORITHMS:
            raise Unsupported(f"is encrypted with {shown(algorithm)}, which is not known")
        self._algorithm, self._options = algorithm, options

    def decrypt(self, token: Blob) -> Blob:
        """The plain bytes of *token*, all of which is read.

        Raises:
            NoKey: there is no key, or it does not fit.
            MissingPackage: the package for it is not installed.
        """
        if not may_wait():
            raise WouldBlock
        return self._decrypt(token)

    @cached_property
    def _decrypt(self) -> Decrypt:
        file, password = self._options.key_file, self._options.password
        what = f"is encrypted ({self._algorithm})"
        if file is None and password is None and self._algorithm == "fernet":
            raise NoKey(f"{what}, and password and key file are missing: {_PASSWORD}, and {_KEY}")
        if file is None:
            raise NoKey(f"{what}, and the key file is missing: {_KEY}")
        try:
            state = parse_object(file.read_bytes())
            return _ALGORITHMS[self._algorithm](state, password)
        except ModuleNotFoundError as error:
            raise MissingPackage(
                f"encrypted LitData needs {error.name}: pip install 'shardfs[crypt]'"
            ) from error
        except NoKey:
            raise
        except ShardfsError as error:
            raise NoKey(
                f"the key file {file} is no key file of LitData for {self._algorithm}: {error}"
            ) from error
        except OSError as error:
            raise NoKey(f"the key file {file} can't be read: {error.strerror}") from error


def _fernet(state: dict[str, Any], password: str | None) -> Decrypt:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

    text = member(state, "salt", str)
    if password is None:
        raise NoKey(f"is encrypted (fernet), and the password is missing: {_PASSWORD}")
    try:
        salt = base64.urlsafe_b64decode(text)
    except ValueError as error:
        raise NoKey("the salt in the key file is wrong: it is no base64") from error
    derivation = PBKDF2HMAC(algorithm=SHA256(), length=32, salt=salt, iterations=_ITERATIONS)
    key = derivation.derive(to_bytes(password))

    def decrypt(token: Blob, /) -> Blob:
        try:
            return Fernet(token, key)
        except WrongToken as error:
            wrong = "the password or the key file is wrong, or the encrypted data is damaged"
            raise NoKey(wrong) from error

    return decrypt


def _rsa(state: dict[str, Any], password: str | None) -> Decrypt:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256

    password = password or optional(state, "password", str)
    try:
        key = _private_key(to_bytes(member(state, "private_key", str)), password)
    except UnsupportedAlgorithm as error:
        raise NoKey(
            "the private key in the key file is locked in a way that is not known"
        ) from error
    if not isinstance(key, RSAPrivateKey):
        raise NoKey("the private key in the key file is no RSA key")
    padding = OAEP(mgf=MGF1(algorithm=SHA256()), algorithm=SHA256(), label=None)

    def decrypt(token: Blob, /) -> Blob:
        wrong = NoKey("the key file is wrong, or the encrypted data is damaged")
        if token.size() != key.key_size // 8:
            raise wrong
        try:
            return Bytes(key.decrypt(bytes(read_all(token)), padding))
        except ValueError as error:
            raise wrong from error

    return decrypt


def _private_key(pem: bytes, password: str | None) -> object:
    """The key in *pem*, with or without a password, since one may be given that a key has no need of."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem, None)
    except TypeError as error:  # it is locked
        if not password:
            raise NoKey(
                f"the key file is locked, and the password is missing: {_PASSWORD}"
            ) from error
    except ValueError as error:
        raise NoKey("the private key in the key file can't be read") from error
    try:
        return load_pem_private_key(pem, to_bytes(password))
    except ValueError as error:
        raise NoKey("the password of the key file is wrong") from error


_ALGORITHMS: dict[str, Callable[[dict[str, Any], str | None], Decrypt]] = {
    "fernet": _fernet,
    "rsa": _rsa,
}
