"""Which version this is, and when this process began to read it."""

import time

VERSION = "0.3.0"
#: Sources that are newer than this are not what this process runs.
STARTED = time.time()
