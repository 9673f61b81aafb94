"""Goldens: a full record of what the mesh does, which shows every change of behaviour that a change of code makes.

    python -m lab.goldens record [PART...]
    python -m lab.goldens check [PART...]

A part is a function that returns records by name. Parts run without a model and without a real clock, so that the same
code makes the same records on every machine. `lab/goldens/recorded/` holds a file for each part.
"""
