"""All parts by name, each a function that makes its records."""

from collections.abc import Callable, Mapping

from lab.goldens import graph, judge, made_up, strategies
from lab.goldens.records import Records

PARTS: Mapping[str, Callable[[], Records]] = {
    "strategies": strategies.record,
    "rules": graph.record_rules,
    "rows": graph.record_rows,
    "writers": graph.record_writers,
    "judge": judge.record,
    "model_judge": judge.record_model,
    "contracts": made_up.record_contracts,
    "made_up": made_up.record,
}
