"""The whole system beside what a user would pick: sets of questions (`sets`), where answers fail (`stages`), the report
(`report`)."""
