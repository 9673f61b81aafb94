"""Programs of a domain that nobody has trained a model on: a model writes SQL, which it has read a lot of.

Its statement is never run. It is read as one SELECT over one of the domain's functions and translated into a program;
what cannot be is no program, a table or column that the domain does not have among it. So a question about what the
tables do not hold mostly gets no answer.
"""

from services.kg.generate.sql.writer import SqlWriter

__all__ = ["SqlWriter"]
