"""How fast the machine is: something that no change of swarmlet changes."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks import results
from benchmarks.measure import calls, cpu_us
from benchmarks.registry import Line, Plan, benchmark

_OBJECT = {f"key-{n}": [n, str(n), {"nested": n}] for n in range(20)}


@benchmark(results.MACHINE)
def python(plan: Plan) -> Iterator[Line]:
    def work() -> None:
        text = json.dumps(_OBJECT)
        sorted((len(str(value)), key) for key, value in json.loads(text).items())

    yield Line(results.MACHINE, "us", cpu_us(plan, 3000, calls(work)))
