"""Domains of one's own, drafted from CSV files: authors, their books and who lent them; teams and who works there."""

import csv
from collections.abc import Sequence
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


def write(folder: Path, name: str, rows: Sequence[Sequence[str]]) -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_all(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [write(folder, "Authors.csv", AUTHORS), write(folder, "books.csv", BOOKS), write(folder, "loans.csv", LOANS)]


def write_office(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [
        write(folder, "teams.csv", TEAMS),
        write(folder, "employees.csv", EMPLOYEES),
        write(folder, "vans.csv", VANS),
    ]
