"""Filling the graph's tables from files: rows of tables, and sources that mappings describe."""

from services.kg.load.errors import BadMapping, LoadError, UnknownFormat
from services.kg.load.run import FileReport, LoadReport, Problem, load

__all__ = ["BadMapping", "FileReport", "LoadError", "LoadReport", "Problem", "UnknownFormat", "load"]
