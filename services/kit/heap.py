"""The heap of this process."""

import ctypes


def trim() -> None:
    """Return free memory to the kernel, which glibc would keep; other allocators are left alone."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
