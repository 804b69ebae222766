"""``python -m tensilo``: the command line program."""

import signal
import sys

from ._tensilo import _main


def main():
    """Runs the program with the arguments of this process, and exits."""
    # the program installs its own signal handler, which would chain to Python's
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_main(["tensilo", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
