import tests.drawing  # noqa: F401
