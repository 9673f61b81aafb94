"""English numbers, units, dates and times, read in one place.

words.yaml, units.yaml    what the words and units are
folding                   words without accents
vocabulary                both files as tables and as parts of patterns
numbers                   digits with currency and scale, numbers in words
dates                     days, months and years as texts write them
quantities                all of them in a text, each with its unit and its place
times                     "last friday", "q4 2023": phrases to windows of days, in a calendar
"""
