"""JAX starts threads, which the forks of other tests would not survive, and fixes its devices then.

So what imports it is in `inside/` and runs in a process of its own: see `test_inside.py`.
"""

import os

collect_ignore = [] if os.environ.get("COREDATA_TESTS_WITH_JAX") else ["inside"]
