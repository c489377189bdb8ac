"""What matches, case by case: ``python -m tests.conformance``, with faults by ``--faults``."""

import sys

from tests.conformance.inprocess import TOKEN, VirtualPool
from tests.conformance.recorded import CASES, Step, described, replay


def main(show_faults: bool) -> None:
    everything: list[Step] = []
    for case in CASES:
        pool = VirtualPool(3)
        try:
            steps = list(replay(case, pool, TOKEN))
        finally:
            pool.close()
        print(_line(case, steps))
        if show_faults and described(steps):
            print(described(steps))
        everything += steps
    print(_line("all", everything))


def _line(name: str, steps: list[Step]) -> str:
    matched = sum(not step.faults for step in steps)
    differ = sum(step.differs for step in steps)
    return f"{name:20} {matched}/{len(steps)}" + (f", of these {differ} as we choose" if differ else "")


if __name__ == "__main__":
    main("--faults" in sys.argv[1:])
