"""Slugs of Grammy categories, and the count of ceremonies.

Sources count by the year whose music is awarded: the 61st Grammys are of 2018 and were given in February 2019.
"""

from importlib.resources import files

from services.kg.definition.folder import Folder
from services.kg.definition.vocabulary import read_vocabulary

category_key = read_vocabulary(Folder(files("services.kg.domains") / "music"), "categories.yaml").code

FIRST_YEAR = 1958
_BEFORE_FIRST = 1957


def edition(year: int) -> int:
    """The number of the ceremony: 61 for 2018."""
    return year - _BEFORE_FIRST


def year_of(edition: int) -> int:
    """The year that a ceremony awards: 2018 for the 61st."""
    return edition + _BEFORE_FIRST
