// @azure/cosmos as a foreign client: executeBulkOperations of `count` documents, then a count and an ordered query.
//   node cosmos_bulk.mjs '{"connection": "...", "database": "db", "container": "items", "count": 20000, "keys": 500}'
import { CosmosClient } from "@azure/cosmos";

const { connection, database, container, count, keys } = JSON.parse(process.argv[2]);
const client = new CosmosClient({
  connectionString: connection,
  connectionPolicy: { retryOptions: { maxRetryAttemptCount: 1000, maxWaitTimeInSeconds: 120 } },
});
const items = client.database(database).container(container);

const operations = [];
for (let i = 0; i < count; i++) {
  const key = `key-${i % keys}`;
  operations.push({
    operationType: "Upsert",
    partitionKey: key,
    resourceBody: { id: `doc-${i}`, key, number: i, text: "x".repeat(200) },
  });
}
const results = await items.items.executeBulkOperations(operations);
const statuses = {};
for (const one of results) {
  const status = one.response?.statusCode ?? one.error?.code ?? "none";
  statuses[status] = (statuses[status] ?? 0) + 1;
}

const ask = async (query) => (await items.items.query(query, { maxItemCount: 1000 }).fetchAll()).resources;
const [counted] = await ask("SELECT VALUE COUNT(1) FROM c");
const highest = await ask("SELECT TOP 3 VALUE c.number FROM c ORDER BY c.number DESC");
const groups = await ask("SELECT c.key, COUNT(1) AS n FROM c WHERE c.number < 10 GROUP BY c.key");
const { resource } = await items.item("doc-0", "key-0").read();
client.dispose();
console.log(JSON.stringify({ statuses, counted, highest, groups, first: resource }));
