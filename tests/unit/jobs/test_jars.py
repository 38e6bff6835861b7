"""The jars of the image `spark` fit the Spark in it."""

import re
from pathlib import Path

import pyspark

from tests.spark.jars import packages


def test_the_file_system_for_azure_is_of_the_hadoop_in_pyspark():
    bundled = next((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"))
    version = bundled.stem.removeprefix("hadoop-client-api-")
    assert packages() == [f"org.apache.hadoop:hadoop-azure:{version}"]


def test_the_image_puts_them_where_pyspark_looks():
    dockerfile = (Path(__file__).parents[3] / "Dockerfile").read_text()
    assert "COPY deploy/spark/pom.xml ./" in dockerfile
    python = re.search(r"PYTHON_IMAGE=(python)[^:]*:(3\.\d+)", dockerfile)
    assert python is not None
    place = f"/opt/sluice/venv/lib/{''.join(python.groups())}/site-packages/pyspark/jars"
    assert f"COPY --from=spark-jars /jars {place}\n" in dockerfile
