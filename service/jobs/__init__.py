"""The PySpark jobs: backfill, reconcile, repair."""
