"""Fernet tokens (https://github.com/fernet/spec) as plain bytes, decrypted where they are read.

base64url of: u8 0x80 | u64 time | initialization vector[16] | AES-128-CBC, padded by PKCS #7 | HMAC-SHA256[32]

A token may be a whole chunk, and ``cryptography``'s own Fernet wants all of it in memory several times over. Yet every
4 characters of base64 can be decoded by themselves, and a block of CBC needs nothing but the one before it. So no more
than what is read is decrypted, and nothing is kept.
"""

from __future__ import annotations

import binascii
import hmac
from typing import TYPE_CHECKING

from shardfs.blob import clip, read_exactly
from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from shardfs.blob import Blob

_VERSION = b"\x80"
_VECTOR = 9
_BLOCK = 16
_CONTENT = _VECTOR + _BLOCK
_SIGNATURE = 32
# Enough that a call's own cost does not count; a multiple of the 3 bytes in 4 characters and of a block.
_STEP = 3 * (64 << 10)
_STANDARD = bytes.maketrans(b"-_", b"+/")


class WrongToken(Corrupt):
    """It is no Fernet token, or one of another key: which of them can't be told."""


class Fernet:
    """The plain bytes of a token, which was found to be whole and right."""

    def __init__(self, blob: Blob, key: bytes) -> None:
        """Read all of *blob*. Raises WrongToken where it is not one of the *key*, of 32 bytes."""
        signing, self._key = key[:_BLOCK], key[_BLOCK:]
        self._raw = _Decoded(blob)
        self._end = self._raw.size() - _SIGNATURE
        if self._end <= _CONTENT or (self._end - _CONTENT) % _BLOCK:
            raise WrongToken("no Fernet token has this length")
        self._check(signing)
        self._size = self._end - _CONTENT - self._padding()

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        first = start // _BLOCK
        content = self._decrypt(first, -(-stop // _BLOCK))
        return content[start - first * _BLOCK : stop - first * _BLOCK]

    def _check(self, signing: bytes) -> None:
        if self._raw.read(0, len(_VERSION)) != _VERSION:
            raise WrongToken("no Fernet token begins like this")
        signature = hmac.new(signing, digestmod="sha256")
        for at in range(0, self._end, _STEP):
            signature.update(self._raw.read(at, min(_STEP, self._end - at)))
        if not hmac.compare_digest(signature.digest(), self._raw.read(self._end, _SIGNATURE)):
            raise WrongToken("the signature of the Fernet token does not fit")

    def _padding(self) -> int:
        """How many bytes fill the last block up, each of them that number."""
        blocks = (self._end - _CONTENT) // _BLOCK
        last = bytes(self._decrypt(blocks - 1, blocks))
        count = last[-1]
        if not 1 <= count <= _BLOCK or last[-count:] != bytes([count]) * count:
            raise WrongToken("the padding of the Fernet token is wrong")
        return count

    def _decrypt(self, first: int, last: int) -> memoryview:
        """The blocks from *first* to before *last*."""
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        start, stop = _CONTENT + first * _BLOCK, _CONTENT + last * _BLOCK
        before = bytes(self._raw.read(start - _BLOCK, _BLOCK))
        decryptor = Cipher(AES(self._key), CBC(before)).decryptor()
        target = memoryview(bytearray(max(stop - start, 0)))
        for at in range(start, stop, _STEP):
            part = decryptor.update(self._raw.read(at, min(_STEP, stop - at)))
            target[at - start : at - start + len(part)] = part
        return target.toreadonly()


class _Decoded:
    """The bytes behind base64url text."""

    def __init__(self, text: Blob) -> None:
        self._text, length = text, text.size()
        if length % 4 or not length:
            raise WrongToken(f"no base64 text has {length} characters")
        self._size = length // 4 * 3 - bytes(text.read(length - 2, 2)).count(b"=")

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        """All bytes of that part, which must lie inside."""
        first, last = offset // 3, -(-(offset + length) // 3)
        text = read_exactly(self._text, first * 4, (last - first) * 4, "base64 text")
        try:
            data = binascii.a2b_base64(bytes(text).translate(_STANDARD))
        except binascii.Error as error:
            raise WrongToken("damaged base64 text") from error
        if len(data) != min(last * 3, self._size) - first * 3:  # of other characters nothing comes
            raise WrongToken("damaged base64 text")
        return memoryview(data)[offset - first * 3 :][:length]
