"""Blobs through Hadoop's file system for Azure, where it is on Spark's class path (package hadoop-azure, in the image
`spark`): then Spark's own readers open them where they are, on any number of machines.

Access is by a shared access signature for reading one container, made anew for each unit from the key or the identity
of BLOB_*. So no key and no token of the identity goes into Spark's configuration, and every kind of identity will do.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import structlog
from azure.storage.blob import BlobServiceClient, ContainerClient, ContainerSasPermissions, generate_container_sas
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from service.jobs.faults import BadInput
from service.jobs.storage import Blobs

log = structlog.get_logger(__name__)

_SIGNED_FOR: Final = timedelta(hours=24)
"""Longer than any unit takes; a key for signatures by an identity lasts 7 days at most."""
_CLOCKS_DIFFER: Final = timedelta(minutes=5)
_REQUEST_BYTES: Final = str(16 * 1024 * 1024)
"""Files are read from beginning to end: few large requests. Hadoop's default is 4 MB."""
_CLIENT: Final = "org.apache.hadoop.fs.azurebfs.services.AbfsBlobClient"
"""Speaks to the blob service; in hadoop-azure 3.4.2 and newer."""
_GLOB: Final = re.compile(r"([\\*?\[\]{}])")


@dataclass(frozen=True, slots=True)
class Access:
    """How Spark gets at the blobs of one container."""

    root: str
    options: dict[str, str] = field(repr=False)
    """For the reader; they hold the signature."""

    def path(self, name: str) -> str:
        """Where a blob is."""
        return f"{self.root}/{name}"


def access_to(blobs: Blobs) -> Access:
    """A new signature, and where it is of use."""
    with blobs.client() as client:
        address = urlsplit(client.url)
        options = {
            # The blob service, which flat and hierarchical accounts have, and Azurite too (Hadoop 3.4.2 and newer).
            "fs.azure.fns.account.service.type": "BLOB",
            "fs.azure.account.hns.enabled": "false",
            "fs.azure.account.auth.type": "SAS",
            "fs.azure.sas.fixed.token": _signature(client, blobs),
            "fs.azure.read.request.size": _REQUEST_BYTES,
            "fs.azure.read.readahead.blocksize": _REQUEST_BYTES,
            # A file system that is kept would keep its first signature.
            "fs.abfs.impl.disable.cache": "true",
            "fs.abfss.impl.disable.cache": "true",
        }
        host = str(address.hostname)
        if address.scheme == "http":  # Azurite; Hadoop's other client has no plain HTTP
            options |= {"fs.azure.always.use.https": "false", "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION"}
        if address.port is not None:  # http://127.0.0.1:10000/account/container
            options["fs.azure.abfs.endpoint"] = f"{host}:{address.port}"
            host = f"{client.account_name}.dfs.core.windows.net"
        scheme = "abfss" if address.scheme == "https" else "abfs"
        return Access(f"{scheme}://{blobs.container}@{host.replace('.blob.', '.dfs.', 1)}", options)


def opens(spark: SparkSession, blobs: Blobs, name: str) -> bool:
    """Whether this Spark can open a blob: tried, since class path, version and rights all have to be right."""
    try:
        jvm, context = spark.sparkContext._jvm, spark.sparkContext._jsc  # noqa: SLF001 - there is no other way to Hadoop
        hadoop = jvm.org.apache.hadoop  # type: ignore[union-attr]
        conf = hadoop.conf.Configuration(context.hadoopConfiguration())
        if conf.getClassByNameOrNull(_CLIENT) is None:
            return False
        access = access_to(blobs)
        for key, value in {**access.options, "fs.azure.io.retry.max.retries": "1"}.items():
            conf.set(key, value)
        path = hadoop.fs.Path(access.path(name))
        files = path.getFileSystem(conf)
        try:
            files.getFileStatus(path)
        finally:
            files.close()
    except (Py4JError, PySparkException, AttributeError, BadInput) as fault:
        log.warning("Spark cannot open the blobs itself, although it has hadoop-azure", why=_telling(fault))
        return False
    return True


def _telling(fault: BaseException) -> str:
    """Java's own message begins in the second line."""
    return (str(fault).splitlines() or [""])[:2][-1][:300]


def literal(path: str) -> str:
    """As Spark's readers take it: what stands for other names in a pattern stands for itself."""
    return _GLOB.sub(r"\\\1", path)


def _signature(client: ContainerClient, blobs: Blobs) -> str:
    """The connection string's own, or one made with its key, or one in the name of the identity."""
    given = urlsplit(client.url).query
    if given:
        return given
    now = datetime.now(UTC)
    begin, end = now - _CLOCKS_DIFFER, now + _SIGNED_FOR
    rights = ContainerSasPermissions(read=True, list=True)
    key = getattr(client.credential, "account_key", None)
    by: dict[str, object] = {"account_key": key}
    if key is None:
        with BlobServiceClient(blobs.account_url, credential=client.credential) as service:
            by = {"user_delegation_key": service.get_user_delegation_key(begin, end)}
    return str(
        generate_container_sas(
            str(client.account_name),
            blobs.container,
            permission=rights,
            start=begin,
            expiry=end,
            **by,  # type: ignore[arg-type]
        )
    )
