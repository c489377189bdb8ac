"""The modelled host: its cores, what each operation costs on it, and the figures a user may replace (docs/model.md)."""
