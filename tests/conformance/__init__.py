"""The emulated apiserver against what a real one answered: 281 recorded exchanges in 18 cases, tests/data/conformance.

Here belongs what replays them and compares; what else is tested of the apiserver is in tests/apiserver.
docs/conformance.md says how the recordings are read and where we differ. `python -m tests.conformance` prints what
matches, case by case.
"""
