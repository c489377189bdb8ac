"""The series of a run's record, as its measurements look at them.

A record may have millions of rows of some thousand series, so texts are looked at once each, in the table's dictionary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from harness.clusterloader.series import Series
from harness.observe.exposition import split


def families(table: pa.Table, names: Collection[str]) -> dict[str, list[Series]]:
    """The series of some metrics, by member or process. `table` is the record's."""
    series = table["series"].combine_chunks()
    known = [split(text) for text in series.dictionary.to_pylist()]
    wanted = [code for code, (name, _) in enumerate(known) if name in names]
    rows = table.set_column(table.column_names.index("series"), "series", series.indices)
    rows = rows.filter(pc.is_in(rows["series"], pa.array(wanted, series.indices.type)))
    points: defaultdict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    columns = (rows[name].to_pylist() for name in ("member", "series", "t", "value"))
    for member, code, t, value in zip(*columns, strict=True):
        points[member, code].append((t, value))
    found: defaultdict[str, list[Series]] = defaultdict(list)
    for (member, code), kept in points.items():
        kept.sort()
        name, labels = known[code]
        times, values = zip(*kept, strict=True)
        found[member].append(Series({**labels, "__name__": name}, times, values))
    return found


def values_at(table: pa.Table, t: float, members: Collection[str]) -> Iterator[tuple[str, str, float]]:
    """Every series of some members, as text, with the last value that it had by a time."""
    member, series = (table[name].combine_chunks() for name in ("member", "series"))
    names, texts = member.dictionary.to_pylist(), series.dictionary.to_pylist()
    columns = {"t": table["t"], "member": member.indices, "series": series.indices, "value": table["value"]}
    wanted = pa.array([code for code, name in enumerate(names) if name in members], member.indices.type)
    rows = pa.table(columns)
    rows = rows.filter(pc.and_(pc.less_equal(rows["t"], t), pc.is_in(rows["member"], wanted)))
    last = rows.group_by(["member", "series"], use_threads=False).aggregate([("value", "last")])
    found = (last[name].to_pylist() for name in ("member", "series", "value_last"))
    for whose, code, value in zip(*found, strict=True):
        yield names[whose], texts[code], value
