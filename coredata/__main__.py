"""`python -m coredata` is the `coredata` command."""

import sys

from coredata.tools.main import main

if __name__ == "__main__":
    sys.exit(main())
