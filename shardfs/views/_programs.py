"""Pickles, fonts and the like: files of programs, told by more than what they begin with. Nothing is unpickled."""

from __future__ import annotations

# --- pickles (pickletools of the standard library lists the opcodes) ---------------------------------------

_STOP, _FRAME = ord("."), 0x95
# Bytes of the argument of each opcode, or of the length in front of it.
_ARGUMENT = {
    **dict.fromkeys(
        b"(.012QRabdeosu}])lt\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98N", 0
    ),
    **dict.fromkeys(b"Khq\x80\x82", 1),
    **dict.fromkeys(b"M\x83", 2),
    **dict.fromkeys(b"Jjr\x84", 4),
    **dict.fromkeys(b"G\x95", 8),
}
_COUNTED = {
    **dict.fromkeys(b"CU\x8a\x8c", 1),
    **dict.fromkeys(b"BTX\x8b", 4),
    **dict.fromkeys(b"\x8d\x8e\x96", 8),
}
# Text up to the end of the line: numbers, names, and two names of a class.
_LINES = {**dict.fromkeys(b"FILPSVgp", 1), **dict.fromkeys(b"ci", 2)}
_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
# Opcodes that are evidence, if the end is out of sight; and what may stand behind the last large value.
_ENOUGH, _REST = 3, 8


def pickle(head: bytes, size: int) -> str:
    """Opcodes as far as they are seen, the last one at the end of the file; torch began its files with a number."""
    if head.startswith(_TORCH):
        return ".pt"
    if not 2 <= head[1] <= 5:
        return ""
    at = 2
    for count in range(len(head)):
        if at >= len(head):
            return ".pkl" if count >= _ENOUGH or size - at <= _REST else ""
        code = head[at]
        if code == _STOP:
            return ".pkl" if at + 1 == size else ""
        after = _behind(head, at)
        if after is None or after >= size:
            return ""
        at = after
    return ""


def _behind(head: bytes, at: int) -> int | None:
    """Where the opcode at *at* ends with its argument; None where it is none."""
    code = head[at]
    if code in _ARGUMENT:
        return at + 1 + _ARGUMENT[code]
    if code in _COUNTED:
        width = _COUNTED[code]
        return at + 1 + width + int.from_bytes(head[at + 1 : at + 1 + width], "little")
    for _ in range(_LINES.get(code, 0)):
        end = head.find(b"\n", at + 1)
        if end < 0 or not head[at + 1 : end].isascii():
            return None
        at = end
    return at + 1 if code in _LINES else None


# --- fonts and code ----------------------------------------------------------------------------------------


def font(head: bytes, size: int) -> str:
    """OpenType: the number of tables, and what the format computes of it for those who search."""
    tables, *numbers = (int.from_bytes(head[at : at + 2], "big") for at in range(4, 12, 2))
    step = 16 << max(tables.bit_length() - 1, 0)
    right = [step, tables.bit_length() - 1, 16 * tables - step]
    if not tables or numbers != right or 12 + 16 * tables > size:
        return ""
    return ".otf" if head.startswith(b"OTTO") else ".ttf"


def font_collection(head: bytes, size: int) -> str:
    version, count = head[4:8], int.from_bytes(head[8:12], "big")
    known = version in (b"\0\1\0\0", b"\0\2\0\0") and 0 < count < 1 << 16
    return ".ttc" if known and 12 + 4 * count <= size else ""


def web_font(head: bytes, size: int) -> str:
    """WOFF and WOFF 2 say how long they are."""
    if int.from_bytes(head[8:12], "big") != size:
        return ""
    return ".woff2" if head.startswith(b"wOF2") else ".woff"
