"""How what a part of the mesh needs beside the rest is installed: for messages."""


def command(*extras: str) -> str:
    """From a checkout or a wheel: Cragmesh is on no package index, and its name there would be somebody else's.

    >>> command("ray")
    "pip install '.[ray]' in a checkout, or the wheel with [ray]"
    """
    names = f"[{','.join(extras)}]"
    return f"pip install '.{names}' in a checkout, or the wheel with {names}"
