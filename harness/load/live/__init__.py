"""What can be seen of a run while it goes on: a tab in Locust's web UI and /metrics for a Prometheus.

`members` and `steps` are pure: they are given what the scraper read, what workers counted and what the scenario noted,
and give figures. `tab` and `exposition` show them. Nothing here is kept: the record has all of it, and reports read
that.
"""
