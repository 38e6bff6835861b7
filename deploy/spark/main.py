"""What spark-submit starts: the same commands as `sluice`, on the cluster's session.

    spark-submit --master ... deploy/spark/main.py backfill --source capture --report DIR

The package and its dependencies must be on driver and executors: see deploy/spark/README.md.
"""

from service.cli import main

if __name__ == "__main__":
    main()
