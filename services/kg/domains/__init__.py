"""The domains of the graph; adding one is a folder here, a line below and a label in `proto/classify.py`."""

from services.kg.domains.finance import DOMAIN as FINANCE
from services.kg.domains.movie import DOMAIN as MOVIE
from services.kg.domains.music import DOMAIN as MUSIC
from services.kg.domains.open import DOMAIN as OPEN
from services.kg.domains.sports import DOMAIN as SPORTS
from services.kg.language.catalogue import Catalogue

CATALOGUE = Catalogue((MOVIE, FINANCE, MUSIC, SPORTS, OPEN))
