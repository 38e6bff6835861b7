// @azure/event-hubs as a foreign client: one command per run, arguments and answer as JSON.
//   node event_hubs.mjs '{"command": "send", "connection": "...", "hub": "hub", ...}'
import { EventHubConsumerClient, EventHubProducerClient, earliestEventPosition } from "@azure/event-hubs";
import { BlobCheckpointStore } from "@azure/eventhubs-checkpointstore-blob";
import { ContainerClient } from "@azure/storage-blob";

const commands = {
  async send({ connection, hub, count, partitionId, partitionKey }) {
    const producer = new EventHubProducerClient(connection, hub);
    const batch = await producer.createBatch({ partitionId, partitionKey });
    for (let i = 0; i < count; i++) batch.tryAdd({ body: { number: i }, properties: { from: "js" } });
    await producer.sendBatch(batch);
    const properties = await producer.getEventHubProperties();
    await producer.close();
    return { partitionIds: properties.partitionIds, createdOn: properties.createdOn };
  },

  // Reads until it has `count` events or an error; `position` is that of the SDK.
  async receive({ connection, hub, group, count, partitionId, position, epoch, metrics }) {
    const consumer = new EventHubConsumerClient(group ?? "$Default", connection, hub, {
      retryOptions: { maxRetries: 0 },
    });
    const events = [];
    const outcome = await new Promise((resolve) => {
      const options = {
        startPosition: position ?? earliestEventPosition,
        ownerLevel: epoch,
        maxBatchSize: 100,
        maxWaitTimeInSeconds: 1,
        trackLastEnqueuedEventProperties: metrics ?? false,
      };
      const handlers = {
        async processEvents(batch, context) {
          for (const event of batch)
            events.push({
              partition: context.partitionId,
              body: event.body,
              sequence: event.sequenceNumber,
              offset: event.offset,
              properties: event.properties,
              last: context.lastEnqueuedEventProperties?.sequenceNumber,
            });
          if (events.length >= count) resolve(null);
        },
        async processError(error) {
          resolve({ code: error.code, message: error.message });
        },
      };
      if (partitionId === undefined) consumer.subscribe(handlers, options);
      else consumer.subscribe(partitionId, handlers, options);
    });
    await consumer.close();
    return { events, error: outcome };
  },

  // The SDK's own processor: balances by blobs, checkpoints every batch, stops once it has seen `count` events.
  async process({ connection, hub, count, storage, container }) {
    const blobs = new ContainerClient(storage, container);
    await blobs.createIfNotExists();
    const consumer = new EventHubConsumerClient("$Default", connection, hub, new BlobCheckpointStore(blobs), {
      loadBalancingOptions: { strategy: "greedy", updateIntervalInMs: 500 },
    });
    const events = [];
    const errors = [];
    await new Promise((resolve) => {
      consumer.subscribe(
        {
          async processEvents(batch, context) {
            for (const event of batch) events.push([context.partitionId, event.sequenceNumber]);
            if (batch.length) await context.updateCheckpoint(batch[batch.length - 1]);
            if (events.length >= count) resolve();
          },
          async processError(error) {
            errors.push(`${error.code}: ${error.message}`);
          },
        },
        { startPosition: earliestEventPosition, maxBatchSize: 100, maxWaitTimeInSeconds: 1 },
      );
    });
    await consumer.close();
    return { events, errors };
  },
};

const { command, ...args } = JSON.parse(process.argv[2]);
const answer = JSON.stringify(await commands[command](args));
process.stdout.write(`${answer}\n`, () => process.exit(0)); // the SDK leaves timers behind
