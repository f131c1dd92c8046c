"""A run as a table: *long*, a row for each dialogue and score, or *wide*, a row for each dialogue with a column for each score.

The columns are those of ``kgfleet export --format csv``, with versions and scoring rules in place of their number. A dialogue
without scores has one row with an empty `score`, so that none is missed when rows are counted.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional

from kgfleet._runs import records
from kgfleet._scores import leaves

if TYPE_CHECKING:
    import pandas

#: Rows that are written at a time.
ROWS_AT_ONCE = 10_000

#: The columns that both forms begin with, and what they hold.
_COMMON = {
    "run": "text",
    "model": "text",
    "task": "text",
    "iteration": "integer",
    "case": "text",
    "state": "text",
    "failure": "text",
    "message": "text",
}

_LONG = {**_COMMON, "group": "text", "score": "text", "value": "number", "is_headline": "flag"}

_WIDE = {
    **_COMMON,
    "headline_score": "text",
    "headline": "number",
    "rounds": "integer",
    "prompt_tokens": "integer",
    "completion_tokens": "integer",
    "started_at": "time",
    "seconds": "number",
    "seed": "integer",
    "worker": "text",
    "attempt": "integer",
    "record": "text",
}

#: The columns that both forms end with, before the scores of the wide form.
_PROVENANCE = {"kgfleet": "text", "pack": "text", "pack_hash": "text", "scorer": "text"}


def rows(exported: Iterable[Dict[str, Any]], form: str = "long") -> Iterator[Dict[str, Any]]:
    """The rows of the records of a run."""
    if form not in ("long", "wide"):
        raise ValueError(f"the form `{form}` is neither `long` nor `wide`")
    for line in exported:
        yield from _long(line) if form == "long" else [_wide(line)]


def to_dataframe(
    run: str,
    form: str = "long",
    *,
    data_dir: Optional[str] = None,
    fleet: Optional[str] = None,
) -> "pandas.DataFrame":
    """A run as a data frame of pandas, which must be installed. Times are in UTC, durations in seconds."""
    import pandas

    made = list(rows(records(run, data_dir=data_dir, fleet=fleet), form))
    columns = _columns(made, form)
    types = {"text": "string", "integer": "Int64", "number": "Float64", "flag": "boolean"}
    series = {}
    for name, kind in columns.items():
        values = [row.get(name) for row in made]
        series[name] = pandas.Series(values) if kind == "time" else pandas.Series(values, dtype=types[kind])
        if kind == "time":
            series[name] = pandas.to_datetime(series[name], utc=True)
    return pandas.DataFrame(series)


def to_parquet(
    run: str,
    path: str,
    form: str = "long",
    *,
    data_dir: Optional[str] = None,
    fleet: Optional[str] = None,
) -> int:
    """Writes a run as Apache Parquet, with zstd, and returns the number of rows. Needs pyarrow.

    Times are microseconds in UTC. Only some rows are held at a time; for the wide form the run is read twice, because the
    columns must be known before the first row.
    """
    import pyarrow
    import pyarrow.parquet

    def read() -> Iterator[Dict[str, Any]]:
        return rows(records(run, data_dir=data_dir, fleet=fleet), form)

    types = {
        "text": pyarrow.string(),
        "integer": pyarrow.int64(),
        "number": pyarrow.float64(),
        "flag": pyarrow.bool_(),
        "time": pyarrow.timestamp("us", tz="UTC"),
    }
    columns = _columns(read() if form == "wide" else [], form)
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    written, left = 0, read()
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while True:
            some = list(islice(left, ROWS_AT_ONCE))
            if not some:
                return written
            writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))
            written += len(some)


def _columns(made: Iterable[Dict[str, Any]], form: str) -> Dict[str, str]:
    if form == "long":
        return {**_LONG, **_PROVENANCE}
    columns = {**_WIDE, **_PROVENANCE}
    for row in made:
        for name in row:
            columns.setdefault(name, "number")
    return columns


def _common(line: Dict[str, Any]) -> Dict[str, Any]:
    record = line["record"]
    outcome, key = record["outcome"], record["key"]
    return {
        "run": line["run"],
        "model": key["model"],
        "task": key["task"],
        "iteration": key["iteration"],
        "case": record["provenance"]["task"]["case"],
        "state": outcome["state"],
        "failure": outcome.get("cause"),
        "message": outcome.get("message"),
    }


def _provenance(line: Dict[str, Any]) -> Dict[str, Any]:
    provenance = line["record"]["provenance"]
    task = provenance["task"]
    return {
        "kgfleet": provenance["kgfleet"],
        "pack": task["pack"],
        "pack_hash": task["pack_hash"],
        "scorer": task["scorer"],
    }


def _long(line: Dict[str, Any]) -> List[Dict[str, Any]]:
    common, provenance = _common(line), _provenance(line)
    headline = line["headline"]["score"]
    made = [
        {
            **common,
            "group": group or None,
            "score": name,
            "value": value,
            "is_headline": headline == (f"{group}.{name}" if group else name),
            **provenance,
        }
        for (group, name), value in leaves(line["record"]["outcome"].get("scores", {}))
    ]
    return made or [{**common, **provenance}]


def _wide(line: Dict[str, Any]) -> Dict[str, Any]:
    record = line["record"]
    began, answered = _time(record["started_at"]), [_time(round["answered_at"]) for round in record["rounds"]]
    row = {
        **_common(line),
        "headline_score": line["headline"]["score"],
        "headline": line["headline"]["value"],
        "rounds": len(record["rounds"]),
        "prompt_tokens": _tokens(record, "prompt_tokens"),
        "completion_tokens": _tokens(record, "completion_tokens"),
        "started_at": began,
        "seconds": (max(answered) - began).total_seconds() if answered else None,
        "seed": record["provenance"]["seed"],
        "worker": record["attempt"]["worker"],
        "attempt": record["attempt"]["number"],
        "record": record["attempt"]["id"],
        **_provenance(line),
    }
    for (group, name), value in leaves(record["outcome"].get("scores", {})):
        column = f"{group}.{name}" if group else name
        # A score named like another column must not take its place.
        row[f"score.{column}" if column in row else column] = value
    return row


def _tokens(record: Dict[str, Any], name: str) -> Optional[int]:
    counted = [round["answer"].get("usage", {}).get(name) for round in record["rounds"]]
    known = [count for count in counted if count is not None]
    return sum(known) if known else None


def _time(text: str) -> datetime:
    # Older Pythons read at most six digits of a second, and no `Z`.
    whole, _, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{(fraction + '000000')[:6]}+00:00")
