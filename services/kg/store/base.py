"""What all tables of the graph share."""

from sqlalchemy import MetaData

METADATA = MetaData()
