"""The jars that the image `spark` adds to PySpark's own, by the names that Spark fetches them with."""

from pathlib import Path
from xml.etree import ElementTree as ET

POM = Path(__file__).parents[2] / "deploy/spark/pom.xml"
_MAVEN = "{http://maven.apache.org/POM/4.0.0}"


def packages():
    """For `spark.jars.packages`: group, name and version of each."""
    found = ET.parse(POM).getroot().findall(f"{_MAVEN}dependencies/{_MAVEN}dependency")
    names = [[each.findtext(f"{_MAVEN}{part}") for part in ("groupId", "artifactId", "version")] for each in found]
    return [":".join(parts) for parts in names]
