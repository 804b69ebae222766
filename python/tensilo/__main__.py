"""``python -m tensilo``: the command line program."""

import signal
import sys

from ._tensilo import _main


def main():
    """Runs the program with the arguments of the process, and ends it."""
    # the program has handlers of its own, which would call those of Python
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_main(["tensilo", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
