"""A comparison as files: report.html (self-contained, charts interactive), report.md (charts as SVG), report.json.

Belongs here: words, numbers' format, charts, templates. Does not belong here: how a figure is taken
(`harness.compare`). Nothing is written into a report that is not in a record.
"""
