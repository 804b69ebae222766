"""``python -m tensilo``: runs the command-line program."""

import signal
import sys

from ._tensilo import _main


def main():
    """Runs the program with the arguments of this process, then exits."""
    # The program's signal handler also calls the previous one. Python's would raise KeyboardInterrupt later.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_main(["tensilo", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
