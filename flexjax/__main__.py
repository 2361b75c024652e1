"""python -m flexjax"""

import sys

from flexjax.cli import main

if __name__ == "__main__":
    sys.exit(main())
