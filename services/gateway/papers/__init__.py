"""Which documents of a collection answer a question: Onewo's strategy (KDD Cup 2024, AQA).

The question is cleaned (`clean`) and searched as it is; meanwhile the generator writes keywords and an answer
(`enhance`), and the best of the first search give words of their own (`feedback`). Each becomes a form of the query
(`forms`), each form is searched by each encoder and by BM25 (`candidates`), the best of all are scored again,
and all lists together rank (`ensemble`), by weights that are data (`weights`).
"""
