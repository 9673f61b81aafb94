"""What is free goes back to the kernel."""

import ctypes
from pathlib import Path

from services.kit.heap import trim

COUNT, SIZE = 1_000, 64 * 1024


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def test_what_is_free_below_what_is_not_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    blocks = [libc.malloc(SIZE) for _ in range(COUNT)]
    for block in blocks:
        ctypes.memset(block, 1, SIZE)
    for block in blocks[:-1]:
        libc.free(ctypes.c_void_p(block))
    kept = resident()
    trim()
    assert kept - resident() > COUNT * SIZE / 2
    libc.free(ctypes.c_void_p(blocks[-1]))
