"""`python -m isogloss` is the command `isogloss`."""

import sys

from isogloss.cli import main

sys.exit(main())
