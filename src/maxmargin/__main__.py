"""``python -m maxmargin``: the same as ``maxmargin``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
