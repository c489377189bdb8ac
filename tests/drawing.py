"""Imported by tests that draw: vl-convert keeps a runtime of its own for the whole process, which is started here,
before any test's leak check."""

import vl_convert

vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})
