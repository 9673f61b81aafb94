"""`cragmesh kg ask`, `run` and `shell`: the knowledge graph from the command line, through its service."""

import atexit
import json
import readline
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from proto.kg import KgCatalogue, KgExecuteRequest, KgFunction, KgRequest, KgResponse, KgStatement
from services.cli.caller import Caller, Refused, Unreachable
from services.cli.console import plain
from services.cli.ending import wrong

CALL_S = 40.0
ROWS_SHOWN = 10
# A wider table is unreadable in a terminal; the text says the same.
MAX_COLUMNS = 5
STATUS_STYLE = {"ok": "green", "stale": "yellow", "empty": "yellow", "no_event": "yellow"}
HELP = """A line is a program in the regularized language, and is run. Tab completes functions and keys.
  ?question      write a program for the question and run it
  .domain NAME   look for functions in this domain first (movie, finance, music, sports, open or one of yours)
  .time WHEN     ask as of this time: 02/28/2024, 10:04:54 PT
  .functions     what there is
  .quit          leave; so does Ctrl-D"""


class KgClient(Caller):
    """The KG-API-parser."""

    def __init__(self, url: str, *, token: str = "") -> None:
        super().__init__("KG-API-parser", url, CALL_S, token=token)

    def ask(self, request: KgRequest) -> KgResponse:
        return self.call("POST", "/kg/query", KgResponse, request)

    def run(self, request: KgExecuteRequest) -> KgResponse:
        return self.call("POST", "/kg/execute", KgResponse, request)

    def catalogue(self) -> KgCatalogue:
        return self.call("GET", "/kg/catalogue", KgCatalogue)


def show(console: Console, response: KgResponse) -> None:
    """Print each statement with its status and facts, then the seconds, tokens and gaps of the whole."""
    for statement in response.statements:
        status = Text(f"{statement.status:>11}  ", style=STATUS_STYLE.get(statement.status, "red"))
        code = Syntax(plain(statement.source), "python", theme="ansi_dark", background_color="default", word_wrap=True)
        line = Table.grid()
        line.add_row(status, code)
        console.print(line)
        console.print(Text(f"             {plain(statement.text)}"))
        _rows(console, statement)
    timing = f"{response.write.elapsed_ms:.0f} ms to write, {response.execute.elapsed_ms:.0f} ms to execute"
    tokens = f", {response.prompt_tokens} + {response.completion_tokens} tokens" if response.llm_calls else ""
    notes = [timing + tokens, f"by {response.mode}"] if response.mode != "auto" else [timing]
    notes += ["repaired"] if response.repaired else []
    notes += [f"{item.stage} {item.reason}" for item in response.degraded]
    notes += [f"no model was asked: --domain {response.unasked} asks one"] if response.unasked else []
    notes += [f"sources until {response.as_of}"] if response.as_of else []
    console.print(Text("; ".join(notes), style="dim"))


def _rows(console: Console, statement: KgStatement) -> None:
    rows = json.loads(statement.rows_json)
    if len(rows) < 2 or len(rows[0]) > MAX_COLUMNS:
        return
    table = Table(*(escape(plain(name)) for name in rows[0]), box=None, padding=(0, 2), header_style="bold")
    for row in rows[:ROWS_SHOWN]:
        table.add_row(*(escape(plain(str(value))) if value is not None else "-" for value in row.values()))
    console.print(table)
    if statement.row_count > ROWS_SHOWN:
        console.print(Text(f"             {statement.row_count - ROWS_SHOWN} more", style="dim"))


def completions(functions: Mapping[str, KgFunction], line: str, text: str) -> list[str]:
    """Functions, or keys of the function that the line calls before the cursor, which begin with `text`."""
    last = max(functions, key=lambda name: line.rfind(f"{name}("), default="")
    is_call = last and f"{last}(" in line
    options: list[str] = []
    if is_call:
        options += [*(key.name for key in functions[last].keys), *functions[last].facets]
    if not is_call or text.startswith("get"):
        options += functions
    return sorted({option for option in options if option.startswith(text)})


def shell(client: KgClient, console: Console, history: Path, *, domain: str, query_time: str) -> None:
    """Read programs and questions until the end of input.

    Raises:
        Unreachable: there is no service at all.
    """
    functions = {function.name: function for function in client.catalogue().functions}
    domain = domain or "movie"

    def complete(text: str, state: int) -> str | None:
        """Readline's protocol: the `state`-th completion of `text`, None after the last."""
        options = completions(functions, readline.get_line_buffer(), text)
        return options[state] if state < len(options) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n\"'()[]*,-=;")
    readline.parse_and_bind("tab: complete")
    if history.exists():
        readline.read_history_file(history)
    history.parent.mkdir(parents=True, exist_ok=True)
    atexit.register(readline.write_history_file, history)
    console.print(Text(HELP, style="dim"))
    while True:
        try:
            line = input(f"{domain}> ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        command, _, rest = line.partition(" ")
        match command:
            case "":
                continue
            case ".quit" | ".exit":
                return
            case ".help":
                console.print(Text(HELP, style="dim"))
            case ".functions":
                for function in functions.values():
                    parameters = ", ".join(function.parameters)
                    console.print(Text(f"{function.domain:>8}  {function.name}({parameters}): {function.summary}"))
            case ".domain":
                domain = rest.strip() or domain
            case ".time":
                query_time = rest.strip()
            case _:
                _answer(client, console, line, domain, query_time)


def _answer(client: KgClient, console: Console, line: str, domain: str, query_time: str) -> None:
    context = {"domain": domain, "query_time": query_time or None}
    try:
        if line.startswith("?"):
            show(console, client.ask(KgRequest.model_validate({"query": line[1:].strip(), **context})))
        else:
            show(console, client.run(KgExecuteRequest.model_validate({"program": line, **context})))
    except ValidationError as error:
        console.print(Text(wrong(error), style="red"))
    except (Refused, Unreachable) as error:
        console.print(Text(plain(str(error)), style="red"))
