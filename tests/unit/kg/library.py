"""Domains of one's own, drafted from CSV files: authors, their books and who lent them; teams and who works there."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

AUTHORS = [
    ("author_id", "name", "born", "country"),
    ("a1", "Ada Quill", "1815-12-10", "Norway"),
    ("a2", "Bo Reed", "1901-02-03", "Norway"),
    ("a3", "Cy Page", "1950-06-30", "Peru"),
    ("a4", "Di Vellum", "1962-01-05", "Peru"),
]
BOOKS = [
    ("isbn", "title", "author_id", "genre", "year", "price_usd", "weight_kg", "In print?", "copies"),
    ("0001", "The Long Way", "a1", "Novel", "1840", "9.50", "0.4", "yes", "1200"),
    ("0002", "Short Cuts", "a2", "Novel", "1930", "12", "0.35", "no", "5000000000"),
    ("0003", "Another Way", "a1", "Essay", "1850", "8.25", "0.5", "yes", "1,500"),
    ("0004", "By Night", "a3", "Poetry", "1975", "7", "0.2", "yes", "90"),
    ("0005", "Marbled Paper", "a4", "Essay", "1999", "31", "1.2", "yes", "700"),
    ("0006", "Loose Leaves", "a4", "Poetry", "2004", "15", "0.3", "no", "300"),
]
LOANS = [("reader", "book"), ("Rosa", "0001"), ("Rosa", "0002"), ("Tom", "0001"), ("Tom", "0004")]
TEAMS = [
    ("team_id", "name", "head", "founded_on"),
    ("T1", "Tools", "E1", "2001-02-03"),
    ("T2", "Paint", "E3", "2004-05-06"),
    ("T3", "Glass", "E4", "2008-09-10"),
]
EMPLOYEES = [
    ("employee_id", "full_name", "team", "salary_eur", "is_trainee"),
    ("E1", "Una Marsh", "T1", "52000", "0"),
    ("E2", "Vic", "T1", "31000", "1"),
    ("E3", "Wanda Peel", "T2", "61000", "0"),
    ("E4", "Xaver Holt", "T3", "47000", "0"),
]
# Nothing tells their rows apart.
VANS = [("name", "wheels", "colour"), ("Ox", "4", "red"), ("Ox", "6", "red"), ("Mule", "4", "grey")]


# A year is the name of its row.
YEARS = [("Year", "Weddings", "Partings"), ("1945", "1613", "485"), ("1946", "2291", "610"), ("1947", "1992", "483")]
RATES = [("quarter", "percent_2024"), ("first", "4.5"), ("second", "4.25")]
ORDERS = [
    ("order_id", "buyer", "order_date", "status", "total_eur"),
    ("1005", "A. Moss", "2023-05-01", "open", "420"),
    ("1006", "B. Fern", "2023-06-01", "shipped", "1500.5"),
    ("1007", "A. Moss", "2024-01-09", "shipped", "80"),
]
LINES = [("order_id", "sku", "pieces"), ("1005", "P-1", "1"), ("1006", "P-1", "3"), ("1006", "P-2", "2")]
PRODUCTS = [("sku", "name", "price_eur"), ("P-1", "Oak Desk", "420"), ("P-2", "Wall Clock", "120.25")]
# Ports of two countries, one of which is called as its city; ships that sail there, and races of two ships.
PORTS = [
    ("code", "city", "country", "depth_m"),
    ("nor1", "Bergen", "Norway", "14"),
    ("sgp1", "Singapore", "Singapore", "22"),
    ("nor2", "Oslo", "Norway", "9"),
]
SHIPS = [
    ("ship", "shipyard", "launched", "fuel_capacity_kg", "engine_cores", "port", "owner", "rating", "sex"),
    ("tug01", "Dock Nine", "1931", "4000", "2", "nor1", "Dr. Weiss", "B+", "F"),
    ("tug02", "Keel & Sons", "1958", "6500", "4", "nor2", "A. Lund", "A+", "M"),
    ("gale", "North Slip", "1899", "9000", "4", "sgp1", "Dr. Weiss", "A", "F"),
    ("mist", "Dock Nine", "1972", "2500", "8", "sgp1", "B. Holm", "C", "M"),
]
RACES = [
    ("day", "first_ship", "second_ship", "spectators"),
    ("2024-05-01", "tug01", "gale", "3100"),
    ("2024-06-09", "gale", "tug02", "4500"),
    ("2025-06-11", "mist", "tug01", "900"),
]
REPAIRS = [
    ("repair", "ship", "started", "finished", "master"),
    ("R-1", "tug01", "2024-02-03", "2024-02-09", "Ulla Berg"),
    ("R-2", "tug01", "2024-07-15", "", "Ove Lie"),
    ("R-3", "gale", "2025-01-20", "", "Ulla Berg"),
]
# Two tables that join a third by the same role; people whom people manage, by name.
PEOPLE = [
    ("person_id", "name", "manager", "city"),
    ("P1", "Ann Reed", "", "Oslo"),
    ("P2", "Bo Falk", "Ann Reed", "Riga"),
    ("P3", "Cy Dorn", "Ann Reed", "Turku"),
]
ARTICLES = [
    ("article_id", "title", "author_id"),
    ("A1", "Cold Ice", "P1"),
    ("A2", "Warm Sand", "P2"),
    ("A3", "Late Rain", "P3"),
    ("A4", "First Snow", "P3"),
]
TALKS = [
    ("talk_id", "topic", "author_id", "city"),
    ("T1", "Ice Live", "P1", "Riga"),
    ("T2", "Sand Live", "P2", "Oslo"),
    ("T3", "Rain Live", "P3", "Bergen"),
]
# Small numbers for keys, which are called by what they are to a row; ends of a way; a word that is a value and a date.
GUIDES = [
    ("id", "name", "language", "joined", "manager_id"),
    ("1", "Ada Lum", "Danish", "2009-04-01", ""),
    ("2", "Ben Orr", "English", "2015-09-12", "1"),
    ("3", "Cleo Pim", "Greek", "2021-02-20", "1"),
]
PIERS = [
    ("code", "name", "city", "opened"),
    ("QA1", "North Pier", "Lund", "1901"),
    ("QB2", "Mole Head", "Visby", "1955"),
    ("QC3", "Old Quay", "Visby", "1888"),
]
TRIPS = [
    ("id", "title", "guide_id", "from_pier", "to_pier", "price_usd", "status", "closed", "dogs_allowed", "riders_2024"),
    ("1", "Seal Watch", "2", "QA1", "QB2", "45", "closed", "2024-03-02", "yes", "310"),
    ("2", "Dusk Sail", "3", "QB2", "QC3", "80", "open", "", "no", "120"),
    ("3", "Cave Row", "2", "QC3", "QA1", "25", "open", "", "yes", "95"),
]
VISITS = [
    ("visit_no", "pier", "customer", "day", "nights"),
    ("V901", "QA1", "Rolf Ek", "2024-05-01", "2"),
    ("V902", "QC3", "Mina Roth", "2024-06-03", "5"),
    ("V903", "QA1", "Mina Roth", "2024-07-09", "1"),
]
MILLS = [
    ("mill_id", "name", "county", "fuel", "capacity_mw", "commissioned"),
    ("1", "Low Weir", "Kent", "Water", "40", "1961"),
    ("2", "Ash Top", "Kent", "Wind", "220", "2017"),
    ("3", "Black Fen", "Essex", "Coal", "900", "1974"),
]
YIELDS = [
    ("mill_id", "year", "generation_gwh", "staff"),
    ("1", "2022", "110", "9"),
    ("1", "2023", "130", "8"),
    ("3", "2022", "4100", "310"),
    ("3", "2023", "3900", "290"),
]
PROBES = [
    ("probe", "agency", "launch_date", "carrier", "outcome", "cost_musd", "last_days"),
    ("Tern 1", "ARA", "2011-08-05", "Auk 5", "success", "300", "400"),
    ("Skua", "BSO", "2019-02-11", "Puffin", "failure", "95", "12"),
    ("Plover", "ARA", "2023-07-14", "Puffin", "success", "75", "90"),
]
CANDIDATES = [
    ("candidate_id", "candidate", "party", "born"),
    ("1", "Ida Voss", "Reform", "1961"),
    ("2", "Jon Hale", "Unity", "1974"),
    ("3", "Kit Moor", "Reform", "1983"),
]
RESULTS = [
    ("year", "district", "candidate_id", "votes", "share_percent", "elected"),
    ("2018", "East Ward", "1", "2100", "52.5", "yes"),
    ("2018", "East Ward", "2", "1900", "47.5", "no"),
    ("2022", "East Ward", "1", "1700", "44.7", "no"),
    ("2022", "East Ward", "2", "2100", "55.3", "yes"),
    ("2022", "West Ward", "3", "3000", "100", "yes"),
]
STEWS = [
    ("stew_id", "title", "prep_minutes", "cook_minutes", "servings"),
    ("1", "Fen Broth", "10", "45", "4"),
    ("2", "Marsh Pot", "30", "120", "6"),
]
ROOTS = [("root_id", "root"), ("1", "Parsnip"), ("2", "Salsify"), ("3", "Swede")]
STEW_ROOTS = [("stew_id", "root_id", "grams"), ("1", "1", "300"), ("2", "1", "250"), ("2", "3", "500")]
ERUPTIONS = [
    ("eruption_id", "geyser", "start_date", "end_date", "deaths", "evacuated"),
    ("11", "Old Spit", "2010-10-25", "2010-11-30", "3", "350"),
    ("12", "Old Spit", "2023-03-11", "2023-03-15", "0", "5"),
    ("13", "Hiss", "2010-08-29", "2010-09-18", "0", "100"),
]
EPISODES = [
    ("series", "episode", "title", "published", "length_minutes", "guest", "downloads"),
    ("Tide Hour", "1", "Slack Water", "2019-03-01", "52", "Una Berg", "810"),
    ("Tide Hour", "2", "Spring Tide", "2020-03-08", "41", "Max Oda", "1430"),
    ("Low Light", "1", "Candle", "2020-06-12", "33", "Una Berg", "1200"),
]
FLATS = [
    ("flat_id", "address", "rooms", "area_m2", "landlord"),
    ("1", "12 Elm Row", "2", "110", "Hal Moe"),
    ("2", "9 Quay Lane", "4", "82", "Ruth Abel"),
    ("3", "77 Mill Path", "3", "95", "Hal Moe"),
]
PAINTERS = [("painter_id", "name"), ("1", "Mira Sol"), ("2", "Jan Veer")]
PAINTINGS = [
    ("painting_id", "title", "painter_id", "finished"),
    ("1", "Blue Door", "1", "1922"),
    ("2", "Grey Field", "2", "1955"),
    ("3", "Red Boats", "1", "1930"),
]
INSPECTIONS = [("inspection_id", "flat_id", "officer", "day"), ("31", "1", "Jo Park", "2024-11-20")]
FERRIES = [
    ("ferry", "origin", "destination", "sails_on", "departure_time", "arrival_time", "passengers", "first_painted"),
    ("Gannet", "Skaw", "Lunna", "2024-05-01", "08:15", "10:40", "148", "1999"),
    ("Tirrick", "Lunna", "Skaw", "2024-05-01", "12:05", "14:30", "88", "2004"),
    ("Shearwater", "Skaw", "Fethaland", "2024-05-02", "17:30", "21:55", "180", "2012"),
    ("Bonxie", "Fethaland", "Lunna", "2024-05-02", "06:50", "09:45", "97", "2011"),
    ("Solan", "Skaw", "Lunna", "2024-05-03", "11:30", "13:55", "139", "2008"),
]
BOUTS = [
    ("bout_id", "held", "white_id", "black_id", "result", "moves"),
    ("101", "2023-05-02", "1", "2", "1-0", "41"),
    ("102", "2023-05-03", "3", "1", "0-1", "33"),
    ("103", "2024-02-10", "2", "3", "1-0", "80"),
]
MEMBERS = [("member_id", "name", "born", "died"), ("1", "Arvid Lind", "1888-03-12", "1950-08-19")]
MEMBERS += [("2", "Zsofia Bart", "1997-11-02", ""), ("3", "Tomas Igle", "1979-06-30", "")]
# Columns called as their table; numbers of unknown units, and those that number; places of which some are no rows.
PUPILS = [("pupil_id", "name", "birth_date"), ("U1", "Wim Aker", "2010-02-11"), ("U2", "Ine Borg", "2011-07-30")]
LESSONS = [("code", "title", "tutor"), ("L1", "Weaving", "Odd Ruud"), ("L2", "Knots", "Liv Moe")]
MARKS = [("pupil_id", "code", "mark"), ("U1", "L1", "88"), ("U1", "L2", "61"), ("U2", "L1", "97")]
BROOKS = [("brook", "flows_into", "flow_lps", "weirs"), ("Ulva", "Long Bay", "40", "0"), ("Rill", "Ulva", "12", "3")]
TOOLS = [("tool", "maintainer", "language", "stars"), ("loomy", "Tove Hald", "Python", "90")]
TOOLS += [("knotter", "Jan Eik", "Rust", "310")]
VERSIONS = [("tool", "version", "released", "breaking", "fixed_bugs"), ("loomy", "1.0", "2020-05-01", "yes", "4")]
VERSIONS += [("loomy", "1.10", "2021-02-03", "no", "9"), ("knotter", "1.0", "2022-01-12", "no", "2")]
CROPS = [("crop", "sown_on", "price_eur_per_kg"), ("spelt", "2024-03-02", "1.4"), ("rye", "2024-09-20", "0.9")]
BILLS = [("bill_id", "payer", "sum_eur", "settled"), ("B-1", "Tor Vik", "120", "yes"), ("B-2", "Eva Dal", "75", "no")]
# People of a first and a last name, who stand under a tag that is not the name of what they belong to.
GUILDS = [("guild", "tag", "prize_money_eur"), ("Oaken", "OAK", "900"), ("Elmen", "ELM", "70"), ("Ashen", "ASH", "810")]
WORKERS = [("worker_id", "first_name", "last_name", "guild", "craft", "wage_eur", "joined_in", "remote", "manager_id")]
WORKERS += [
    ("1", "Ada", "Moor", "OAK", "farrier", "310", "1999", "yes", ""),
    ("2", "Bo", "Lark", "ELM", "welder", "290", "2004", "no", "1"),
]
WORKERS += [
    ("3", "Cy", "Vane", "ASH", "farrier", "350", "2011", "no", "1"),
    ("4", "Di", "Moor", "OAK", "founder", "205", "2011", "no", "2"),
    ("5", "Eyk", "", "OAK", "smelter", "180", "2012", "no", "2"),  # has no whole name, and loads
]
HALLS = [("hall", "floor", "height_cm"), ("Anvil Room", "1", "310"), ("Loft", "2", "240"), ("Gallery", "2", "275")]
GEYSERS = [("geyser", "height_m"), ("Old Spit", "41"), ("Hiss", "12")]
# As people align them; nothing tells the first two apart, and what is not known is NA.
GUESTS = """class, sex,      age, "came back"
1st,   "female", 29,  1
1st,   "female", 29,  1
3rd,   "male",   NA,  0
2nd,   "male",   61,  0
2nd,   "female", NA,  1
3rd,   "male",   30,  0
3rd,   "male",   31,  1
3rd,   "male",   32,  0
3rd,   "female", 33,  1
3rd,   "male",   64,  0
"""


def write(folder: Path, name: str, rows: Sequence[Sequence[str]]) -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_tables(folder: Path, tables: Mapping[str, Sequence[Sequence[str]]]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [write(folder, f"{name}.csv", rows) for name, rows in tables.items()]


def write_all(folder: Path) -> list[Path]:
    return write_tables(folder, {"Authors": AUTHORS, "books": BOOKS, "loans": LOANS})


def write_office(folder: Path) -> list[Path]:
    return write_tables(folder, {"teams": TEAMS, "employees": EMPLOYEES, "vans": VANS})


def write_shop(folder: Path) -> list[Path]:
    written = write_tables(
        folder, {"rates2024": RATES, "years": YEARS, "orders": ORDERS, "lines": LINES, "products": PRODUCTS}
    )
    guests = folder / "guests.csv"
    guests.write_text(GUESTS, encoding="utf-8")
    return [guests, *written]


def write_yard(folder: Path) -> list[Path]:
    return write_tables(folder, {"ports": PORTS, "ships": SHIPS, "races": RACES, "repairs": REPAIRS})


def write_press(folder: Path) -> list[Path]:
    return write_tables(folder, {"people": PEOPLE, "articles": ARTICLES, "talks": TALKS})


def write_tours(folder: Path) -> list[Path]:
    return write_tables(folder, {"guides": GUIDES, "piers": PIERS, "trips": TRIPS, "visits": VISITS})


def write_almanac(folder: Path) -> list[Path]:
    tables: dict[str, Sequence[Sequence[str]]] = {"mills": MILLS, "yields": YIELDS, "probes": PROBES}
    tables |= {"candidates": CANDIDATES, "results": RESULTS, "stews": STEWS, "roots": ROOTS, "stew_roots": STEW_ROOTS}
    tables |= {"episodes": EPISODES, "flats": FLATS, "inspections": INSPECTIONS}
    return write_tables(folder, tables | {"geysers": GEYSERS, "eruptions": ERUPTIONS})


def write_academy(folder: Path) -> list[Path]:
    tables: dict[str, Sequence[Sequence[str]]] = {
        "pupils": PUPILS,
        "lessons": LESSONS,
        "marks": MARKS,
        "brooks": BROOKS,
    }
    return write_tables(folder, tables | {"tools": TOOLS, "versions": VERSIONS, "crops": CROPS, "bills": BILLS})


def write_guild(folder: Path) -> list[Path]:
    return write_tables(folder, {"guilds": GUILDS, "workers": WORKERS, "halls": HALLS})


def write_ferries(folder: Path) -> list[Path]:
    return write_tables(folder, {"ferries": FERRIES})


# Headers without gaps, Y and N, who is named in another table, numbers in millions, several values in a cell.
HARBOURS = [
    ("HarbourName", "Country", "OpenToPublic", "BerthCount", "DepthM", "PlacesNearby"),
    ("Port Ansel", "Norway", "Y", "12", "9.5", "Inn, Chapel"),
    ("Kelp Bay", "Canada", "N", "4", "6", "Inn"),
    ("Grey Quay", "Wales", "Y", "7", "11.25", "Museum, Inn"),
    ("Sound End", "Norway", "Y", "2", "3", "Chapel, Museum"),
]
CREW_MEMBERS = [
    ("CrewID", "FullName", "Rank", "JoinedYear", "DogName", "FullTime", "HomeHarbour"),
    ("W1", "Ada Quill", "mate", "2004", "Biscuit", "Y", "Port Ansel"),
    ("W2", "Ben Orr", "deckhand", "2019", "", "N", "Kelp Bay"),
    ("W3", "Cleo Marsh", "mate", "2021", "Tar", "Y", "Port Ansel"),
]
CALLOUTS = [
    ("CalloutNo", "CalloutDate", "Harbour", "Leader", "Outcome", "CostMillionEUR", "PeopleSaved", "PaidBy"),
    ("2023-01", "2023-02-11", "Port Ansel", "Ada Quill", "success", "1.5", "3", "insurance"),
    ("2023-02", "2023-06-30", "Kelp Bay", "Cleo Marsh", "failure", "0.4", "0", "state"),
    ("2024-01", "2024-01-05", "Port Ansel", "Ada Quill", "success", "6.2", "11", "state"),
]
CRANES = [
    ("crane", "harbour", "lift_t", "price_per_lift", "reach_m"),
    ("Big Olga", "Port Ansel", "120", "40", "55"),
    ("Little Jo", "Kelp Bay", "15", "12.5", "20"),
]
OVERHAULS = [
    ("harbour", "part", "finished", "cost_eur"),
    ("Port Ansel", "pier", "2011", "8000"),
    ("Port Ansel", "crane", "2019", "2500"),
    ("Kelp Bay", "wall", "2020", "4000"),
]


def write_coast(folder: Path) -> list[Path]:
    tables: dict[str, Sequence[Sequence[str]]] = {"Harbours": HARBOURS, "CrewMembers": CREW_MEMBERS}
    return write_tables(folder, tables | {"Callouts": CALLOUTS, "cranes": CRANES, "overhauls": OVERHAULS})


def write_club(folder: Path) -> list[Path]:
    return write_tables(folder, {"bouts": BOUTS, "members": MEMBERS})


def write_gallery(folder: Path) -> list[Path]:
    return write_tables(folder, {"painters": PAINTERS, "paintings": PAINTINGS})
