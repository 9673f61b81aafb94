"""The page's collections: their documents are listed, files are sent with progress, and what is removed is gone."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.page.conftest import HANG_UPS, Opened
from tests.unit.retriever.formats.files import pdf

pytestmark = [pytest.mark.page, pytest.mark.timeout(300), HANG_UPS]


def test_files_are_sent_listed_and_removed(mesh: str, opened: Opened, tmp_path: Path) -> None:
    assert httpx.put(f"{mesh}/collections/shelf", json={}, trust_env=False).is_success
    (tmp_path / "keepers.pdf").write_bytes(pdf("The first keeper of the light was Marta Lindqvist.", "Nobody else."))
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing more")
    page = opened(mesh, path="/#collections/shelf")
    expect(page.locator("#documents-count")).to_have_text("0 documents")
    page.set_input_files("#upload", [str(tmp_path / "keepers.pdf"), str(tmp_path / "broken.pdf")])
    expect(page.locator("#uploads li").nth(0)).to_contain_text("2 passages")
    expect(page.locator("#uploads li").nth(1)).to_contain_text("it is damaged")
    row = page.locator("#documents-rows tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("keepers.pdf")
    found = httpx.get(f"{mesh}/collections/shelf/documents", trust_env=False).json()["documents"]
    assert [(one["pages"], one["state"], one["format"]) for one in found] == [(2, "complete", "pdf")]
    row.get_by_role("button").click()
    row.get_by_role("button").click()
    expect(row).to_have_count(0)
    assert httpx.get(f"{mesh}/collections/shelf/documents", trust_env=False).json()["documents"] == []
