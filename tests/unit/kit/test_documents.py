"""Documents are decoded as browsers do."""

import pytest

from services.kit.documents import codec, decoded, is_foreign


@pytest.mark.parametrize(
    ("charset", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "1990–1995 for €500, “don’t”"),
        ("US-ASCII", "cp1252", "1990–1995"),
        ("ISO_8859-9", "cp1254", "İstanbul’da 10–20 şehir"),
        ("iso-8859-8-i", "iso-8859-8", "עיר"),
        ("gb2312", "gb18030", "朱镕基，總理"),
        ("x-gbk", "gb18030", "朱镕基"),
        ("shift_jis", "cp932", "㈱高島屋 ①～③ 髙橋 Ⅲ"),
        ("x-sjis", "cp932", "髙橋"),
        ("windows-31j", "cp932", "髙橋"),
        ("euc-kr", "cp949", "똠방각하 펲시"),
        ("ks_c_5601-1987", "cp949", "펲시"),
        ("big5", "big5hkscs", "香港嘅裏面"),
        ("tis-620", "cp874", "ประภาคาร"),
        ("windows-874", "cp874", "ประภาคาร"),
        ("x-mac-cyrillic", "mac_cyrillic", "Маяк"),
        ("koi8-u", "koi8-u", "Київ"),
    ],
)
def test_encodings_are_read_as_the_larger_ones_of_the_web(charset: str, encoding: str, text: str) -> None:
    content = text.encode(encoding)
    assert decoded(content, charset) == text
    page = f"<meta charset='{charset}'>".encode() + content
    assert decoded(page).endswith(f">{text}")
    xml = f"<?xml version='1.0' encoding='{charset}'?><p>".encode() + content
    assert decoded(xml).endswith(f"<p>{text}")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_byte_order_mark_counts_before_all_else(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    assert decoded(f"{mark}<meta charset='latin-1'>Маяк".encode(encoding), "utf-8").endswith(">Маяк")


@pytest.mark.parametrize("charset", ["", "martian", "punycode", "idna", "utf-7", "gb", "windows-9999"])
def test_charsets_that_are_none_of_the_webs_have_no_codec(charset: str) -> None:
    assert codec(charset) == ""
    assert decoded("café".encode("cp1252"), charset) == "café"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Маяк построен в 1864 году.".encode("cp1251"), True),
        ("灯塔由玛尔塔于1864年建造。".encode("gbk"), True),
        ("灯台は1864年に建てられた。".encode("cp932"), True),
        ("Маяк построен в 1864 году.".encode(), False),
        ("Маяк построен".encode("utf-16"), False),
        ("<meta charset=koi8-r>Маяк построен".encode("koi8-r"), False),
        ("Où étaient les élèves, à Évry ?".encode("cp1252"), False),
        (b"", False),
    ],
)
def test_a_text_of_another_script_in_an_unnamed_encoding_is_told(content: bytes, expected: bool) -> None:
    assert is_foreign(content) is expected
