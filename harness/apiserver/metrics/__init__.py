"""The metric families of a real apiserver, filled by the emulated one, and their text form."""
