"""A module beside the provider."""

NOTES = []


def fail():
    raise KeyError("no such shelf")
