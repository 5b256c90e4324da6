"""``python -m repro.cli``: the command line where ``repro`` is not on the path."""

import sys

from repro.cli.app import main

sys.exit(main())
