"""Whether the pages of a LIST are one snapshot.

A list that is continued shows the state at the first page's revision (as/storage/continue.go): each page names that
revision, no object is newer, keys go up from page to page, and none comes twice. What is missing shows only beside what
informers were told, which is the checker's part. A list that was begun anew, as after an expired token, is another one.
"""

from __future__ import annotations


class Pages:
    """One list under way. `objects` has what came so far; `problems` are (key, text)."""

    __slots__ = ("_last", "objects", "pages", "problems", "revision")

    def __init__(self) -> None:
        self.revision = 0
        self.pages = 0
        self.objects: dict[str, int] = {}
        self.problems: list[tuple[str, str]] = []
        self._last = ""

    def add(self, revision: int, items: list[tuple[str, int]]) -> None:
        """One page: its resourceVersion, and key and resourceVersion of its objects."""
        self.pages += 1
        self.revision = self.revision or revision
        if revision != self.revision:
            text = f"page {self.pages} is of revision {revision}, the first of {self.revision}"
            self.problems.append(("", text))
        for key, version in items:
            if version > self.revision:
                self.problems.append(
                    (key, f"page {self.pages} has it at {version}, the list is of {self.revision}")
                )
            if key in self.objects:
                self.problems.append((key, f"page {self.pages} has it a second time"))
            elif key <= self._last:
                self.problems.append((key, f"page {self.pages} has it behind {self._last}"))
            self.objects[key] = version
            self._last = key
