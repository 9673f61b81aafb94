"""The bundled domains, each a folder of data beside this file."""

from importlib.resources import files

from services.kg.definition.domain import read_domain
from services.kg.language.catalogue import Catalogue
from services.kg.store.tables import METADATA

# In the order in which a name is looked for; the labels of `proto/classify.py`.
BUNDLED = ("movie", "finance", "music", "sports", "open")

CATALOGUE = Catalogue(read_domain(files(__package__) / name, METADATA, bundled=True) for name in BUNDLED)
