"""Everything on the wire that is not a document: account, databases, containers, ranges, offers."""

from typing import Any

from service.local.cosmos.account import Account, Database
from service.local.cosmos.container import Container
from service.local.cosmos.errors import CosmosError, NotFound
from service.local.cosmos.items import serve_items
from service.local.cosmos.offers import Throughput
from service.local.cosmos.queries import CROSS_PARTITION_OFF, query_plain
from service.local.cosmos.wire import Request, Response, json_response, parse_object

NOT_SUPPORTED = "The requested verb is not supported."


def serve(account: Account, request: Request) -> Response:  # noqa: C901, PLR0911 - a table of paths
    """Answer a request by its path: `/`, `/dbs/..`, `/offers/..`."""
    match request.path:
        case ():
            return _account(request)
        case ("dbs",):
            return _databases(account, request)
        case ("dbs", name):
            return _database(account, request, account.database(name))
        case ("dbs", name, "colls"):
            return _containers(account, request, account.database(name))
        case ("dbs", database, "colls", name):
            return _container(account, request, account.database(database), account.container(database, name))
        case ("dbs", database, "colls", name, "docs", *rest) if len(rest) <= 1:
            return _documents(account.container(database, name), request)
        case ("dbs", database, "colls", name, "pkranges"):
            return _ranges(account.container(database, name), request)
        case ("dbs", database, "colls", name, "conflicts", *rest) if len(rest) <= 1:
            return _conflicts(account.container(database, name), request)
        case ("dbs", database, "colls", name, "operations", "partitionkeydelete"):
            return _delete_partition(account.container(database, name), request)
        case ("offers",):
            return _offers(account, request)
        case ("offers", rid):
            return _offer(account, request, rid)
        case _:
            raise NotFound(f"There is nothing at /{'/'.join(request.path)[:200]}.")


def _account(request: Request) -> Response:
    if request.method != "GET":
        raise CosmosError(405, NOT_SUPPORTED)
    here = [{"name": "Local", "databaseAccountEndpoint": request.base_url}]
    return json_response(
        {
            "_self": "",
            "id": "local",
            "_rid": "local",
            "media": "//media/",
            "addresses": "//addresses/",
            "_dbs": "//dbs/",
            "writableLocations": here,
            "readableLocations": here,
            "enableMultipleWriteLocations": False,
            "continuousBackupEnabled": False,
            "userReplicationPolicy": {"asyncReplication": False, "minReplicaSetSize": 1, "maxReplicasetSize": 4},
            "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
            "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 4},
            "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
            "queryEngineConfiguration": '{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10}',
        }
    )


def _databases(account: Account, request: Request) -> Response:
    listed = [database.properties for database in account.databases.values()]
    if request.is_query:
        return query_plain(request, listed, "Databases")
    if request.method == "GET":
        return _feed("Databases", listed)
    if request.method != "POST":
        raise CosmosError(405, NOT_SUPPORTED)
    given = parse_object(request.body)
    made = account.create_database(given.get("id"), Throughput.from_headers(request))
    return json_response(made.properties, 201, {"etag": made.properties["_etag"]}, 4.95)


def _database(account: Account, request: Request, database: Database) -> Response:
    if request.method == "GET":
        return _read(request, database.properties)
    if request.method == "DELETE":
        _check_match(request, database.properties)
        account.delete_database(database.id)
        return Response(204, {}, b"", 4.95)
    raise CosmosError(405, NOT_SUPPORTED)


def _containers(account: Account, request: Request, database: Database) -> Response:
    listed = [container.properties for container in database.containers.values()]
    if request.is_query:
        return query_plain(request, listed, "DocumentCollections")
    if request.method == "GET":
        return _feed("DocumentCollections", listed, database.rid)
    if request.method != "POST":
        raise CosmosError(405, NOT_SUPPORTED)
    made = account.create_container(database, parse_object(request.body), Throughput.from_headers(request))
    return json_response(made.properties, 201, {"etag": made.properties["_etag"]}, 4.95)


def _container(account: Account, request: Request, database: Database, container: Container) -> Response:
    match request.method:
        case "GET":
            extra = _statistics(container) if request.flag("x-ms-documentdb-populatepartitionstatistics") else {}
            answer = _read(request, container.properties | extra)
            quota = _quota(account, container) if request.flag("x-ms-documentdb-populatequotainfo") else {}
            headers = dict(answer.headers) | quota | _session(container)
            return Response(answer.status, headers, answer.body, answer.charge)
        case "PUT":
            _check_match(request, container.properties)
            account.replace_container(container, parse_object(request.body))
            return json_response(container.properties, 200, {"etag": container.properties["_etag"]}, 4.95)
        case "DELETE":
            _check_match(request, container.properties)
            account.delete_container(database, container.id)
            return Response(204, {}, b"", 4.95)
    raise CosmosError(405, NOT_SUPPORTED)


def _documents(container: Container, request: Request) -> Response:
    intended = request.header("x-ms-cosmos-intended-collection-rid")
    if intended is not None and intended != container.rid:
        # The container was deleted and made again since the client read it (SDKs: COLLECTION_RID_MISMATCH).
        raise CosmosError(400, "The container's resource id is not the one that the request was meant for.", 1024)
    return serve_items(container, request)


def _ranges(container: Container, request: Request) -> Response:
    if request.method != "GET":
        raise CosmosError(405, NOT_SUPPORTED)
    listed = container.ranges.changes(request.header("if-none-match"), container.rid)
    headers = {"etag": container.ranges.etag, "lsn": str(container.ranges.lsn)}
    if listed is None:
        return Response(304, headers)
    body = {"_rid": container.rid, "PartitionKeyRanges": listed, "_count": len(listed)}
    return json_response(body, 200, headers | {"x-ms-item-count": str(len(listed))})


def _conflicts(container: Container, request: Request) -> Response:
    """Conflicts come of writes in several regions: here there are none."""
    if len(request.path) > 5:
        raise NotFound
    if request.is_query:
        cross = request.flag("x-ms-documentdb-query-enablecrosspartition")
        if not cross and request.header("x-ms-documentdb-partitionkey") is None:
            raise CosmosError(400, CROSS_PARTITION_OFF)
        return query_plain(request, [], "Conflicts")
    return _feed("Conflicts", [], container.rid)


def _delete_partition(container: Container, request: Request) -> Response:
    """Delete all documents of one logical partition, which the service does in the background."""
    text = request.header("x-ms-documentdb-partitionkey")
    if request.method != "POST" or text is None:
        raise CosmosError(400, "PartitionKey value must be supplied for this operation.")
    key = container.rules.keys.parse(text).text
    for document in [one for one in container.store.in_order() if one.key.text == key]:
        container.delete(document.name)
    return Response(200, _session(container))


def _session(container: Container) -> dict[str, str]:
    """The token of answers that are about no range."""
    return {"x-ms-session-token": f"0:-1#{container.store.lsn}"}


def _offers(account: Account, request: Request) -> Response:
    listed = [offer.to_json() for offer in account.offers.values()]
    if request.is_query:
        return query_plain(request, listed, "Offers")
    if request.method != "GET":
        raise CosmosError(405, NOT_SUPPORTED)
    return _feed("Offers", listed)


def _offer(account: Account, request: Request, rid: str) -> Response:
    offer = next((one for one in account.offers.values() if one.rid.lower() == rid.lower()), None)
    if offer is None:
        raise NotFound
    if request.method == "PUT":
        account.replace_offer(offer, Throughput.from_content(parse_object(request.body).get("content")))
    elif request.method != "GET":
        raise CosmosError(405, NOT_SUPPORTED)
    return json_response(offer.to_json())


def _quota(account: Account, container: Container) -> dict[str, str]:
    documents, kilobytes = container.count(), sum(one.size for one in container.store.in_order()) // 1024
    usage = f"documentsCount={documents};documentsSize={kilobytes};collectionSize={kilobytes};"
    quota = f"documentsCount=-1;documentsSize={account.partition_limit_bytes // 1024};"
    progress = "x-ms-documentdb-collection-index-transformation-progress"
    return {"x-ms-resource-usage": usage, "x-ms-resource-quota": quota, progress: "100"}


def _statistics(container: Container) -> dict[str, Any]:
    """What each range holds, as part of the container's properties."""
    counts = {place.id: [0, 0] for place in container.ranges.ranges}
    for document in container.store.in_order():
        figures = counts[container.route(document.key).id]
        figures[0] += 1
        figures[1] += document.size
    listed = [
        {"id": place, "sizeInKB": size // 1024, "documentCount": count, "partitionKeys": []}
        for place, (count, size) in counts.items()
    ]
    return {"statistics": listed}


def _feed(name: str, listed: list[dict[str, Any]], rid: str = "") -> Response:
    body = {"_rid": rid, name: listed, "_count": len(listed)}
    return json_response(body, 200, {"x-ms-item-count": str(len(listed))})


def _read(request: Request, properties: dict[str, Any]) -> Response:
    headers = {"etag": properties["_etag"]}
    if request.header("if-none-match") == properties["_etag"]:
        return Response(304, headers)
    return json_response(properties, 200, headers)


def _check_match(request: Request, properties: dict[str, Any]) -> None:
    wanted = request.header("if-match")
    if wanted and wanted not in {"*", properties["_etag"]}:
        raise CosmosError(412, "Operation cannot be performed because one of the specified precondition is not met.")
