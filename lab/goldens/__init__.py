"""Goldens: what the mesh does today, recorded in full, so that a change of its code shows every change of its deeds.

    python -m lab.goldens record [PART...]
    python -m lab.goldens check [PART...]

A part is a function that returns records by name. Parts run without a model and without a real clock, so that the same
code makes the same records on every machine. `lab/goldens/recorded/` holds a file a part.
"""
