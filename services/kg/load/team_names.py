"""Other names of teams: nicknames, abbreviations, and full names where sources shorten them."""

from services.kg.load.identity import slug

# City and nickname, then the abbreviation of the league, then what fans say.
_NBA: dict[str, tuple[str, ...]] = {
    "Atlanta Hawks": ("Hawks", "ATL"),
    "Boston Celtics": ("Celtics", "BOS"),
    "Brooklyn Nets": ("Nets", "BKN"),
    "Charlotte Hornets": ("Hornets", "CHA"),
    "Chicago Bulls": ("Bulls", "CHI"),
    "Cleveland Cavaliers": ("Cavaliers", "CLE", "Cavs"),
    "Dallas Mavericks": ("Mavericks", "DAL", "Mavs"),
    "Denver Nuggets": ("Nuggets", "DEN"),
    "Detroit Pistons": ("Pistons", "DET"),
    "Golden State Warriors": ("Warriors", "GSW", "Dubs"),
    "Houston Rockets": ("Rockets", "HOU"),
    "Indiana Pacers": ("Pacers", "IND"),
    "LA Clippers": ("Clippers", "LAC", "Los Angeles Clippers"),
    "Los Angeles Clippers": ("Clippers", "LAC", "LA Clippers"),
    "Los Angeles Lakers": ("Lakers", "LAL", "LA Lakers"),
    "Memphis Grizzlies": ("Grizzlies", "MEM"),
    "Miami Heat": ("Heat", "MIA"),
    "Milwaukee Bucks": ("Bucks", "MIL"),
    "Minnesota Timberwolves": ("Timberwolves", "MIN", "Wolves"),
    "New Jersey Nets": ("NJN",),
    "New Orleans Pelicans": ("Pelicans", "NOP", "Pels"),
    "New York Knicks": ("Knicks", "NYK", "Knickerbockers"),
    "Oklahoma City Thunder": ("Thunder", "OKC"),
    "Orlando Magic": ("Magic", "ORL"),
    "Philadelphia 76ers": ("76ers", "PHI", "Sixers", "Philadelphia Sixers"),
    "Phoenix Suns": ("Suns", "PHX"),
    "Portland Trail Blazers": ("Trail Blazers", "POR", "Blazers", "Portland Trailblazers"),
    "Sacramento Kings": ("Kings", "SAC"),
    "San Antonio Spurs": ("Spurs", "SAS"),
    "Seattle SuperSonics": ("SuperSonics", "SEA", "Sonics"),
    "Toronto Raptors": ("Raptors", "TOR"),
    "Utah Jazz": ("Jazz", "UTA"),
    "Washington Wizards": ("Wizards", "WAS"),
}
# As FBref shortens them, and as people write them.
_SOCCER: dict[str, tuple[str, ...]] = {
    "Alavés": ("Deportivo Alavés",),
    "Arsenal": ("Gunners",),
    "Athletic Club": ("Athletic Bilbao", "Athletic"),
    "Atlético Madrid": ("Atlético", "Atleti", "Atlético de Madrid"),
    "Barcelona": ("FC Barcelona", "Barça"),
    "Bayern Munich": ("FC Bayern München", "Bayern"),
    "Betis": ("Real Betis",),
    "Bournemouth": ("AFC Bournemouth",),
    "Brest": ("Stade Brestois",),
    "Brighton": ("Brighton & Hove Albion",),
    "Celta Vigo": ("Celta", "Celta de Vigo", "RC Celta"),
    "Clermont Foot": ("Clermont",),
    "Dortmund": ("Borussia Dortmund", "BVB"),
    "Gladbach": ("Borussia Mönchengladbach",),
    "Inter": ("Inter Milan", "Internazionale"),
    "Las Palmas": ("UD Las Palmas",),
    "Leverkusen": ("Bayer Leverkusen",),
    "Lille": ("LOSC Lille", "LOSC"),
    "Luton Town": ("Luton",),
    "Lyon": ("Olympique Lyonnais", "OL"),
    "Mallorca": ("RCD Mallorca",),
    "Manchester City": ("Man City",),
    "Manchester Utd": ("Manchester United", "Man Utd", "Man United"),
    "Marseille": ("Olympique de Marseille", "Olympique Marseille", "OM"),
    "Milan": ("AC Milan",),
    "Monaco": ("AS Monaco",),
    "Newcastle Utd": ("Newcastle United", "Newcastle"),
    "Nice": ("OGC Nice",),
    "Nott'ham Forest": ("Nottingham Forest", "Forest"),
    "Paris S-G": ("Paris Saint-Germain", "Paris SG", "PSG"),
    "Rayo Vallecano": ("Rayo",),
    "Reims": ("Stade de Reims",),
    "Rennes": ("Stade Rennais",),
    "Sheffield Utd": ("Sheffield United",),
    "Strasbourg": ("RC Strasbourg",),
    "Tottenham": ("Tottenham Hotspur", "Spurs"),
    "West Ham": ("West Ham United",),
    "Wolves": ("Wolverhampton Wanderers", "Wolverhampton"),
}
_OTHERS = {
    "nba": {slug(name): others for name, others in _NBA.items()},
    "soccer": {slug(name): others for name, others in _SOCCER.items()},
}


def names_of(sport: str, full: str) -> tuple[str, ...]:
    """What a team is called beside its name in the sources."""
    return _OTHERS.get(sport, {}).get(slug(full), ())


def all_teams(sport: str) -> tuple[str, ...]:
    """Names of all teams that have others, as the sources spell them."""
    return tuple(_NBA if sport == "nba" else _SOCCER)


def is_nba(name: str) -> bool:
    """Whether a team of that name plays in the NBA."""
    return slug(name) in _OTHERS["nba"]
