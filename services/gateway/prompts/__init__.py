"""The gateway's prompts, read once."""

from services.kit.prompts import PromptFolder

_FOLDER = PromptFolder("services.gateway")
load, load_turn, load_table = _FOLDER.prompt, _FOLDER.turn, _FOLDER.table
