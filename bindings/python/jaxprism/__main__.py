"""The command line: `jaxprism`, or `python -m jaxprism`."""

import signal
import sys

from jaxprism import _native


def main() -> int:
    """Runs what the arguments ask for. Returns the exit status."""
    # Nothing of Python's runs from here on that could answer it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command_line(["jaxprism", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
