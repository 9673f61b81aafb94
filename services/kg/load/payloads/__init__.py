"""What sources say, put into the tables: one module a domain, shared by files and by the live mock API."""
