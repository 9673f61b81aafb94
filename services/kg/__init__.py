"""The KG-API-parser: a question becomes a regularized API program, the program SQL, the rows facts in words."""
