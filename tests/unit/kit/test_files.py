"""Files are replaced whole, and what is no file is written to as it is."""

import os
import stat
import threading
from pathlib import Path

import pytest

from services.kit.files import whole, write_whole


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "deep" / "target"
    target.parent.mkdir()
    link.symlink_to("deep/target")
    for content in (b"new", b"newer"):
        write_whole(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert os.listdir(target.parent) == ["target"]


def test_a_circle_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(tmp_path / "link", b"new")
    assert os.listdir(tmp_path) == ["link"]


def test_the_mode_of_an_old_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for mode in (0o600, 0o664):
        file.chmod(mode)
        with whole(file) as draft:
            assert stat.S_IMODE(os.fstat(draft.fileno()).st_mode) == mode
        assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # A daemon: were the pipe replaced, its reader would wait for ever.
    contents: list[bytes] = []
    reader = threading.Thread(target=lambda: contents.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"new")
    assert pipe.is_fifo()
    reader.join(60)
    assert contents == [b"new"]
