"""What spark-submit starts: backfill, reconcile or repair, on the cluster's session.

    spark-submit --master ... deploy/spark/main.py backfill --source capture --report DIR

The package and its dependencies must be on driver and executors: see deploy/spark/README.md.
"""

import sys

from service.jobs.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
