"""``python -m benchmarks``: run, show, keep and compare."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from rich.console import Console

from benchmarks import results, suites
from benchmarks.registry import Plan, benchmarks, measure

GC_THRESHOLD = (50_000, 20, 50)  # as the processes of a pool set it


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="GLOB", help="these benchmarks: codec, 'member/*'"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="values for each line (default 5)"
    )
    parser.add_argument(
        "--size",
        type=float,
        default=1.0,
        metavar="X",
        help="scale of the loads (default 1; less is less exact)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result to FILE")
    parser.add_argument(
        "--against",
        type=Path,
        nargs="?",
        const=results.latest(),
        metavar="FILE",
        help="show ratios to a result; without FILE to the newest of benchmarks/results",
    )
    parser.add_argument("--list", action="store_true", help="name the benchmarks and end")
    found = parser.parse_args()
    if found.repeats < 1 or found.size <= 0:
        parser.error("--repeats must be at least 1, and --size above 0")
    if found.against is not None and not found.against.is_file():
        parser.error(f"--against {found.against}: there is no such file")
    return found


def main() -> int:
    arguments = _arguments()
    suites.register_all()
    chosen = benchmarks(arguments.only)
    if not chosen:
        print(f"no benchmark fits {arguments.only}; --list names them", file=sys.stderr)
        return 2
    if arguments.list:
        print("\n".join(each.name for each in chosen))
        return 0
    gc.set_threshold(*GC_THRESHOLD)
    plan = Plan(arguments.repeats, arguments.size)
    with Console(stderr=True).status("") as status:
        lines = measure(chosen, plan, status.update)
    before = results.load(arguments.against).by_name() if arguments.against else None
    console = Console() if sys.stdout.isatty() else Console(width=140)
    console.print(results.table(lines, before))
    if before is not None:
        console.print(f"then: {arguments.against.name}; {results.MACHINE} is how the machines compare")
    if arguments.json:
        results.save(arguments.json, results.make_results(lines, plan.repeats, plan.size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
