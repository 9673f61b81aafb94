"""CRAG's own data files as records that the domains' mappings describe; no part of what runs."""

from lab.crag_data.convert import Converted, convert, load_folder

__all__ = ["Converted", "convert", "load_folder"]
