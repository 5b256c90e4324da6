"""Version of the package, and the time at which this process imported it."""

import time

VERSION = "0.3.0"
#: Seconds since 1970. Sources changed later differ from the code that this process runs.
STARTED = time.time()
