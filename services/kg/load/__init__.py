"""Filling the graph's tables from files: row files, public tables, the CRAG mock API's own data, and mapped ones."""

from services.kg.load.errors import BadMapping, LoadError, UnknownFormat, UnsafePickle
from services.kg.load.run import FileReport, LoadReport, Problem, load

__all__ = ["BadMapping", "FileReport", "LoadError", "LoadReport", "Problem", "UnknownFormat", "UnsafePickle", "load"]
