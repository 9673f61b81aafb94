"""Codes of Oscar categories, for callers that read sources in Python; the patterns are in categories.yaml."""

from importlib.resources import files

from services.kg.definition.folder import Folder
from services.kg.definition.vocabulary import read_vocabulary

CATEGORIES = read_vocabulary(Folder(files("services.kg.domains") / "movie"), "categories.yaml")
CATEGORY_KEYS = CATEGORIES.codes
category_key = CATEGORIES.code
find_category = CATEGORIES.find
