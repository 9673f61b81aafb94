"""Tables of the sports domain: soccer and NBA games, a row a team a game."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, Table, Text

from services.kg.store.base import METADATA

team = Table(
    "team",
    METADATA,
    Column("team_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # soccer or nba.
    Column("sport", Text, nullable=False),
    Column("league", Text),
)

soccer_match = Table(
    "soccer_match",
    METADATA,
    Column("team_id", Text, primary_key=True),
    Column("date", Text, primary_key=True),
    Column("opponent", Text, primary_key=True),
    Column("opponent_id", Text),
    # "ENG-Premier League".
    Column("league", Text),
    Column("season", Text),
    # Kick-off, local: "16:30:00".
    Column("time", Text),
    # "Sat".
    Column("day", Text),
    Column("round", Text),
    # Home, Away or Neutral.
    Column("venue", Text),
    # W, D, L; null for a game to come.
    Column("result", Text),
    Column("gf", Integer),
    Column("ga", Integer),
    Column("xg", Float),
    Column("xga", Float),
    Column("possession", Float),
    Column("attendance", Integer),
    Column("captain", Text),
    Column("formation", Text),
    Column("referee", Text),
    # Penalty shoot-outs and the like, in words.
    Column("notes", Text),
    Index("soccer_match_date", "date"),
)

nba_game = Table(
    "nba_game",
    METADATA,
    Column("game_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("date", Text, nullable=False),
    Column("season_id", Text),
    # Pre Season, Regular Season, Playoffs, All Star.
    Column("season_type", Text),
    Column("opponent", Text),
    Column("opponent_id", Text),
    # Home or Away.
    Column("venue", Text),
    # W or L.
    Column("result", Text),
    # Points of the team and of its opponent.
    Column("gf", Integer),
    Column("ga", Integer),
    Column("fgm", Float),
    Column("fga", Float),
    Column("fg_pct", Float),
    Column("fg3m", Float),
    Column("fg3a", Float),
    Column("fg3_pct", Float),
    Column("ftm", Float),
    Column("fta", Float),
    Column("ft_pct", Float),
    Column("oreb", Float),
    Column("dreb", Float),
    Column("reb", Float),
    Column("ast", Float),
    Column("stl", Float),
    Column("blk", Float),
    Column("tov", Float),
    Column("pf", Float),
    Column("plus_minus", Float),
    Index("nba_game_team", "team_id", "date"),
    Index("nba_game_date", "date"),
)

nba_event = Table(
    "nba_event",
    METADATA,
    Column("game_id", Text, primary_key=True),
    Column("event", Integer, primary_key=True),
    Column("period", Integer),
    # Time left in the period: "11:42".
    Column("clock", Text),
    Column("home", Text),
    Column("neutral", Text),
    Column("visitor", Text),
    Column("player", Text),
    Column("score", Text),
    Column("margin", Text),
)

# What a source states about a stretch of time without listing the games.
team_period = Table(
    "team_period",
    METADATA,
    Column("team_id", Text, primary_key=True),
    # Half-open: first day, and the day after the last.
    Column("start", Text, primary_key=True),
    Column("end", Text, primary_key=True),
    Column("games", Integer, nullable=False),
    Column("wins", Integer),
    Column("draws", Integer),
    Column("losses", Integer),
    Column("home_wins", Integer),
    Column("home_losses", Integer),
    Column("away_wins", Integer),
    Column("away_losses", Integer),
    Column("gf", BigInteger),
    Column("ga", BigInteger),
    # Names joined by semicolons, one a game, where the source names opponents.
    Column("home_beat", Text),
    Column("home_lost_to", Text),
    Column("away_beat", Text),
    Column("away_lost_to", Text),
    Column("season_types", Text),
)
