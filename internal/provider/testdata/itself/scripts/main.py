import sys


async def greet(name: str) -> str:
    """Greets.

    :param name: of whom
    """
    return "Hello " + name


if __name__ == "__main__":
    print("by itself:", sys.argv[1:], *(sys.stdin.read().split() if "-" in sys.argv else []))
