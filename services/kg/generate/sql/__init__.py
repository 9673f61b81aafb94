"""Programs of a domain that nobody has trained a model on: a model writes SQL, which it has read a lot of.

Its statement is read as one SELECT over the domain's functions, brought to the domain's names and values, and refused
where it is about something else than its question. What is left is the program: see `services.kg.selects`.
"""
