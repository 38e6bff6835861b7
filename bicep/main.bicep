metadata name = 'Sluice'
metadata description = 'Moves records from Event Hubs into Cosmos DB: the service, its Spark jobs, and what they need, each new or your own.'
// Tried: parsed and checked offline against resource schemas (tests/bicep). Not tried: any deployment to Azure.
// Plain dialect: see bicep/README.md.

targetScope = 'resourceGroup'

// ---- Names and place

@description('Optional. Start of every name: lower-case letters and digits.')
@minLength(3)
@maxLength(10)
param name string = 'sluice'

@description('Optional. Region; empty for that of the resource group.')
param location string = ''

@description('Optional. Tags of every resource.')
param tags object = {
  application: 'sluice'
}

@description('Optional. no: only what the images need first (registry, stores, identity); yes: also the app, its jobs and alerts.')
param deployApps bool = true

@description('Optional. Tag of the images sluice and sluice-spark in the registry.')
param imageTag string = 'latest'

// ---- Event Hubs: new, or your own

@description('Optional. Short name of a namespace of your own; empty makes one. Its hub must exist, with partitionCount partitions.')
param existingEventHubNamespace string = ''

@description('Optional. Resource group of that namespace; empty for this one.')
param existingEventHubResourceGroup string = ''

@description('Optional. Name of the hub.')
param eventhubName string = 'records'

@description('Optional. Partitions of the hub. With a hub of your own: the number that it has.')
@minValue(1)
@maxValue(32)
param partitionCount int = 16

@description('Optional. Hours that a new hub keeps events: the time you have to mend what is broken.')
param retentionHours int = 168

@description('Optional. Throughput units of a new namespace: each gives out 2 MB/s or 4,096 events/s.')
param throughputUnits int = 4

@description('Optional. Whether a new hub writes every event to blob storage too. Backfill and reconciliation from Capture need it.')
param captureEnabled bool = true

@description('Optional. Path of Capture files.')
param captureNameFormat string = '{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}'

@description('Optional. Consumer group of the service: one of its own, since another reader would take partitions from it.')
param eventhubConsumergroup string = 'sluice'

@description('Optional. Consumer group for Spark jobs that read the hub itself: give it with --consumer-group. The group of the service tells them how far it is.')
param sparkConsumergroup string = 'sluice-spark'

// ---- Storage: new, or your own

@description('Optional. Name of a storage account of your own; empty makes one.')
param existingStorageAccount string = ''

@description('Optional. Resource group of that account; empty for this one.')
param existingStorageResourceGroup string = ''

@description('Optional. Redundancy of a new account.')
param storageSku string = 'Standard_ZRS'

@description('Optional. Container for leases and checkpoints, lower case.')
param blobContainer string = 'sluice'

@description('Optional. Container for dead letters; empty for the container of leases with -deadletters.')
param deadletterContainer string = ''

@description('Optional. Container that Capture writes.')
param captureContainer string = 'capture'

@description('Optional. Container for the reports of the Spark jobs.')
param reportContainer string = 'reports'

// ---- Cosmos DB: new, or your own

@description('Optional. Name of a Cosmos account of your own; empty makes one.')
param existingCosmosAccount string = ''

@description('Optional. Resource group of that account; empty for this one.')
param existingCosmosResourceGroup string = ''

@description('Optional. Whether to make database and container. no: they are your own and stay as they are.')
param createCosmosContainer bool = true

@description('Optional. The database.')
param cosmosDatabase string = 'sluice'

@description('Optional. The container that receives the documents.')
param cosmosContainer string = 'records'

@description('Optional. Path of the partition key of a new container.')
param cosmosPartitionKey string = '/key'

@description('Optional. fixed or autoscale throughput of a new container.')
@allowed([
  'fixed'
  'autoscale'
])
param cosmosThroughputMode string = 'autoscale'

@description('Optional. RU/s of a new container (with autoscale: the most). At least records per second times RU per record, which /status of a running replica tells.')
param cosmosThroughput int = 10000

@description('Optional. Paths that your queries use, such as /customer/?. Everything else stays out of the index.')
param cosmosIndexedPaths array = []

// ---- Registry: new, or your own

@description('Optional. Name of a container registry of your own; empty makes one.')
param existingRegistry string = ''

@description('Optional. Resource group of that registry; empty for this one.')
param existingRegistryResourceGroup string = ''

// ---- Size and scale

@description('Optional. Cores of a replica. Each worker uses at most one.')
param cpu string = '1.0'

@description('Optional. Memory of a replica: ALLOW_BACKLOG_BYTES and about 512 MiB for each worker must fit.')
param memory string = '2Gi'

@description('Optional. Replicas that always run. 0 lets it sleep, and metrics with it.')
@minValue(0)
param minReplicas int = 1

@description('Optional. Most replicas; 0 reckons it from partitions, rate and replicaCapacity.')
@minValue(0)
param maxReplicas int = 0

@description('Optional. Records per second that one replica can do: let one run without a limit on a backlog, and read its rate in /status.')
@minValue(1)
param replicaCapacity int = 2000

// ---- Settings of the service (service/config.py). A test keeps names and defaults in step.

@description('Optional. auto: fleet where more than one replica may run, so that scaling out does not raise the rate; else replica.')
@allowed([
  'auto'
  'replica'
  'fleet'
])
param eventhubRatelimitScope string = 'auto'

@description('Optional. How often the frontier is made durable, in seconds.')
@minValue(1)
param checkpointIntervalSeconds int = 5

@description('Optional. no = dry run: read, decode, count; leases in memory, nothing written.')
param cosmosWrite bool = true

@minValue(0)
@description('Optional. Records per second; 0 = no limit. Of the replica or of all together: see eventhubRatelimitScope.')
param eventhubRatelimit int = 0

@description('Optional. Where a partition without a checkpoint starts: `earliest`, `latest`, an ISO time, or JSON by partition.')
param eventhubStart string = 'earliest'

@description('Optional. Events that a receiver may hold unread; shrinks with the size of events.')
param eventhubPrefetch int = 3000

@description('Optional. Events handed over at a time.')
param eventhubMaxBatch int = 500

@description('Optional. How long a receiver waits for events before it looks around.')
param eventhubMaxWait string = '1s'

@description('Optional. `websocket` for networks that let only port 443 through.')
@allowed([
  'amqp'
  'websocket'
])
param eventhubTransport string = 'amqp'

@description('Optional. `lease`: blob leases and epochs, EventProcessorHost\'s layout; `ownership`: the current SDKs\' layout.')
@allowed([
  'lease'
  'ownership'
])
param leaseMode string = 'lease'

@description('Optional. How free partitions are taken: all of the fair share at once, or one a cycle.')
@allowed([
  'greedy'
  'balanced'
])
param leaseStrategy string = 'greedy'

@description('Optional. How long a lease holds without renewal: 15 to 60 s (bounds of Azure). In ownership mode the expiry is 120 s.')
param leaseDuration string = '30s'

@description('Optional. How often leases are renewed; at most half the duration. In ownership mode the interval is 30 s.')
param leaseRenew string = '10s'

@description('Optional. Partitions that one host may own; 0 = no limit.')
param leaseMaxPartitions int = 0

@description('Optional. When retention has passed the checkpoint: go on at the first event that is left, or stop.')
@allowed([
  'warn'
  'stop'
])
param checkpointOnGap string = 'warn'

@description('Optional. When the checkpoint is not of this hub\'s life (hub re-created): stop, or forget it and begin anew there.')
@allowed([
  'stop'
  'earliest'
  'latest'
])
param checkpointOnAhead string = 'stop'

@description('Optional. `guarded`: no older record is ever written over a newer one, also across replays and backfill.')
@allowed([
  'upsert'
  'guarded'
])
param cosmosWriteMode string = 'upsert'

@description('Optional. `off`: one request per record, should a service refuse the bulk protocol.')
@allowed([
  'auto'
  'off'
])
param cosmosBulk string = 'auto'

@description('Optional. Records in one bulk request; the service takes at most 100.')
param cosmosBatchMax int = 100

@description('Optional. A batch leaves when it is full, or when its oldest record has waited this long since it arrived.')
param cosmosBatchWait string = '1s'

@description('Optional. Wait between tries where the service names none.')
param cosmosRetryWait string = '2s'

@description('Optional. RU/s that this replica may spend; 0 = no limit.')
param cosmosRulimit int = 0

@description('Optional. Records taken and not yet completed that the replica may hold.')
param allowBacklogOf int = 320000

@description('Optional. How long the oldest of them may wait.')
param allowBacklogTo string = '10m'

@description('Optional. Memory they may take; above it intake pauses, whatever the policy.')
param allowBacklogBytes string = '512MiB'

@description('Optional. Above the limits: end with exit code 70, or pause intake until there is room.')
@allowed([
  'fail'
  'pause'
])
param backlogPolicy string = 'fail'

@description('Optional. Path of the document\'s id in the body, or `sequence`: made from incarnation, partition, sequence and index.')
param documentId string = '/id'

@description('Optional. Name of the property that says where a document came from; empty for none.')
param documentStamp string = '_sluice'

@description('Optional. `module:function` that may replace, split or drop a body.')
param documentTransform string = ''

@description('Optional. `object`, `array`, or a path such as `/records` for several records in one event.')
param documentBody string = 'object'

@description('Optional. Path whose truth makes the record a delete.')
param documentDelete string = ''

@description('Optional. Share of dead letters above which the process stops with exit code 75.')
param deadletterMaxRatio string = '0.5'

@description('Optional. Dead letters in a row above which the process stops with exit code 75.')
param deadletterMaxConsecutive int = 1000

@description('Optional. Processes of this replica, each a host.')
param workers int = 1

@description('Optional. From SIGTERM to the end: drain, checkpoint, release.')
param shutdownDeadline string = '50s'

@description('Optional. How much is logged.')
@allowed([
  'debug'
  'info'
  'warning'
  'error'
])
param logLevel string = 'info'

@description('Optional. `auto`: text on a terminal, else JSON lines.')
@allowed([
  'auto'
  'json'
  'text'
])
param logFormat string = 'json'

@description('Optional. Port of the ops pages; 0 = any free one.')
param httpPort int = 8080

// ---- Spark jobs

@description('Optional. Whether to make the Spark jobs.')
param sparkEnabled bool = true

@description('Optional. When to reconcile, as five cron fields in UTC; empty for by hand only.')
param reconcileCron string = ''

@description('Optional. Cores of a Spark job; 4.0 is the most that the Consumption profile gives.')
param sparkCpu string = '4.0'

@description('Optional. Memory of a Spark job.')
param sparkMemory string = '8Gi'

@description('Optional. Seconds after which a Spark job is ended.')
param sparkTimeoutSeconds int = 86400

// ---- Watching

@description('Optional. Days that logs and metrics are kept.')
param logRetentionDays int = 30

@description('Optional. Address that gets alerts; empty for none.')
param alertEmail string = ''

@description('Optional. Resource ids of action groups of your own that get alerts.')
param alertActionGroupIds array = []

@description('Optional. Alert above so many seconds behind.')
param alertLagSeconds int = 300

@description('Optional. Alert when retention will take unread events in fewer minutes.')
param alertMinutesToLoss int = 240

@description('Optional. Alert above so many dead letters in five minutes.')
param alertDeadLetters int = 0

@description('Optional. Alert when a checkpoint has not moved for so many seconds although there is work.')
param alertCheckpointAgeSeconds int = 300

// ---- Network

@description('Optional. Whether the new stores are reached by private endpoints only, and the app runs inside a virtual network.')
param privateEndpoints bool = false

@description('Optional. Address space of that network.')
param networkAddressPrefix string = '10.90.0.0/22'

@description('Optional. Address space of the apps within it, a /27 or larger.')
param appsAddressPrefix string = '10.90.0.0/23'

@description('Optional. Address space of the private endpoints within it.')
param endpointsAddressPrefix string = '10.90.2.0/24'

// ---- What follows from them

var region = empty(location) ? resourceGroup().location : location
var token = uniqueString(resourceGroup().id, name)
var newNamespace = empty(existingEventHubNamespace)
var newStorage = empty(existingStorageAccount)
var newCosmos = empty(existingCosmosAccount)
var newRegistry = empty(existingRegistry)
var namespaceName = newNamespace ? '${name}-${token}' : existingEventHubNamespace
var storageName = newStorage ? toLower('${name}${token}') : existingStorageAccount
var cosmosName = newCosmos ? '${name}-${token}' : existingCosmosAccount
var registryName = newRegistry ? '${name}${token}' : existingRegistry
var namespaceGroup = newNamespace || empty(existingEventHubResourceGroup) ? resourceGroup().name : existingEventHubResourceGroup
var storageGroup = newStorage || empty(existingStorageResourceGroup) ? resourceGroup().name : existingStorageResourceGroup
var cosmosGroup = newCosmos || empty(existingCosmosResourceGroup) ? resourceGroup().name : existingCosmosResourceGroup
var registryGroup = newRegistry || empty(existingRegistryResourceGroup) ? resourceGroup().name : existingRegistryResourceGroup
var deadLetters = empty(deadletterContainer) ? '${blobContainer}-deadletters' : deadletterContainer
// service/jobs/runs.py: plans, finished units and budgets of the Spark jobs.
var jobsContainer = toLower('${blobContainer}-jobs')

// More replicas than partitions have nothing to do; more than rate over capacity have nothing to gain.
var rateScope = eventhubRatelimitScope != 'auto' ? eventhubRatelimitScope : (maxReplicas == 1 ? 'replica' : 'fleet')
var replicasForRate = rateScope == 'fleet' && eventhubRatelimit > 0 ? (eventhubRatelimit + replicaCapacity - 1) / replicaCapacity : partitionCount
var mostReplicas = max(1, minReplicas, min(partitionCount, maxReplicas > 0 ? maxReplicas : replicasForRate))

// A caught-up replica is still behind by what it takes between two checkpoints (and in 5 s of batching and commits).
// Below that KEDA would keep every replica running for ever.
var replicaRate = eventhubRatelimit == 0 ? replicaCapacity : (rateScope == 'fleet' ? min(eventhubRatelimit, replicaCapacity) : eventhubRatelimit)
var scaleThreshold = max(64, replicaRate * (checkpointIntervalSeconds + 5))

var settings = {
  EVENTHUB_NAMESPACE: eventHubsAccess.outputs.hostName
  EVENTHUB_NAME: eventhubName
  EVENTHUB_CONSUMERGROUP: eventhubConsumergroup
  EVENTHUB_RATELIMIT_SCOPE: rateScope
  BLOB_ACCOUNT_URL: storageAccess.outputs.blobEndpoint
  BLOB_CONTAINER: toLower(blobContainer)
  CHECKPOINT_INTERVAL: '${checkpointIntervalSeconds}s'
  COSMOS_ENDPOINT: cosmosAccess.outputs.endpoint
  COSMOS_DATABASE: cosmosDatabase
  COSMOS_CONTAINER: cosmosContainer
  COSMOS_WRITE: cosmosWrite ? 'yes' : 'no'
  DEADLETTER_CONTAINER: toLower(deadLetters)
  HTTP_HOST: '0.0.0.0'
  EVENTHUB_RATELIMIT: string(eventhubRatelimit)
  EVENTHUB_START: eventhubStart
  EVENTHUB_PREFETCH: string(eventhubPrefetch)
  EVENTHUB_MAX_BATCH: string(eventhubMaxBatch)
  EVENTHUB_MAX_WAIT: eventhubMaxWait
  EVENTHUB_TRANSPORT: eventhubTransport
  LEASE_MODE: leaseMode
  LEASE_STRATEGY: leaseStrategy
  LEASE_DURATION: leaseDuration
  LEASE_RENEW: leaseRenew
  LEASE_MAX_PARTITIONS: string(leaseMaxPartitions)
  CHECKPOINT_ON_GAP: checkpointOnGap
  CHECKPOINT_ON_AHEAD: checkpointOnAhead
  COSMOS_WRITE_MODE: cosmosWriteMode
  COSMOS_BULK: cosmosBulk
  COSMOS_BATCH_MAX: string(cosmosBatchMax)
  COSMOS_BATCH_WAIT: cosmosBatchWait
  COSMOS_RETRY_WAIT: cosmosRetryWait
  COSMOS_RULIMIT: string(cosmosRulimit)
  ALLOW_BACKLOG_OF: string(allowBacklogOf)
  ALLOW_BACKLOG_TO: allowBacklogTo
  ALLOW_BACKLOG_BYTES: allowBacklogBytes
  BACKLOG_POLICY: backlogPolicy
  DOCUMENT_ID: documentId
  DOCUMENT_STAMP: documentStamp
  DOCUMENT_TRANSFORM: documentTransform
  DOCUMENT_BODY: documentBody
  DOCUMENT_DELETE: documentDelete
  DEADLETTER_MAX_RATIO: deadletterMaxRatio
  DEADLETTER_MAX_CONSECUTIVE: string(deadletterMaxConsecutive)
  WORKERS: string(workers)
  SHUTDOWN_DEADLINE: shutdownDeadline
  LOG_LEVEL: logLevel
  LOG_FORMAT: logFormat
  HTTP_PORT: string(httpPort)
  // Not ours: Azure's own names.
  AZURE_CLIENT_ID: identity.outputs.clientId
  APPLICATIONINSIGHTS_CONNECTION_STRING: monitoring.outputs.connectionString
}

// ---- Identities: one for the service and its jobs, one that only Capture writes with

module identity 'modules/identity.bicep' = {
  name: 'identity'
  params: {
    name: '${name}-${token}'
    location: region
    tags: tags
  }
}

module captureIdentity 'modules/identity.bicep' = if (newNamespace) {
  name: 'capture-identity'
  params: {
    name: '${name}-capture-${token}'
    location: region
    tags: tags
  }
}

// ---- Stores

module storage 'modules/storage.bicep' = if (newStorage) {
  name: 'storage'
  params: {
    name: storageName
    location: region
    tags: tags
    sku: storageSku
    publicNetworkAccess: !privateEndpoints
  }
}

module storageAccess 'modules/storage-access.bicep' = {
  name: 'storage-access'
  scope: resourceGroup(storageGroup)
  params: {
    accountName: storageName
    leaseContainer: toLower(blobContainer)
    deadLetterContainer: toLower(deadLetters)
    jobsContainer: jobsContainer
    reportContainer: reportContainer
    captureContainer: captureContainer
    principalId: identity.outputs.principalId
    capturePrincipalId: newNamespace ? captureIdentity.outputs.principalId : ''
  }
  dependsOn: [
    storage
  ]
}

module eventHubs 'modules/event-hubs.bicep' = if (newNamespace) {
  name: 'event-hubs'
  params: {
    namespaceName: namespaceName
    hubName: eventhubName
    location: region
    tags: tags
    partitionCount: partitionCount
    retentionHours: retentionHours
    throughputUnits: throughputUnits
    captureEnabled: captureEnabled
    captureIdentityId: captureIdentity.outputs.id
    captureStorageAccountId: storageAccess.outputs.accountId
    captureContainer: captureContainer
    captureNameFormat: captureNameFormat
    publicNetworkAccess: !privateEndpoints
  }
}

module eventHubsAccess 'modules/event-hubs-access.bicep' = {
  name: 'event-hubs-access'
  scope: resourceGroup(namespaceGroup)
  params: {
    namespaceName: namespaceName
    hubName: eventhubName
    consumerGroups: [
      eventhubConsumergroup
      sparkConsumergroup
    ]
    principalId: identity.outputs.principalId
  }
  dependsOn: [
    eventHubs
  ]
}

module cosmos 'modules/cosmos.bicep' = if (newCosmos) {
  name: 'cosmos'
  params: {
    name: cosmosName
    location: region
    tags: tags
    publicNetworkAccess: !privateEndpoints
  }
}

module cosmosContainerModule 'modules/cosmos-container.bicep' = if (createCosmosContainer) {
  name: 'cosmos-container'
  scope: resourceGroup(cosmosGroup)
  params: {
    accountName: cosmosName
    databaseName: cosmosDatabase
    containerName: cosmosContainer
    partitionKeyPath: cosmosPartitionKey
    throughputMode: cosmosThroughputMode
    throughput: cosmosThroughput
    indexedPaths: cosmosIndexedPaths
    stamp: documentStamp
  }
  dependsOn: [
    cosmos
  ]
}

module cosmosAccess 'modules/cosmos-access.bicep' = {
  name: 'cosmos-access'
  scope: resourceGroup(cosmosGroup)
  params: {
    accountName: cosmosName
    databaseName: cosmosDatabase
    containerName: cosmosContainer
    principalId: identity.outputs.principalId
  }
  dependsOn: [
    cosmosContainerModule
  ]
}

module registry 'modules/registry.bicep' = if (newRegistry) {
  name: 'registry'
  params: {
    name: registryName
    location: region
    tags: tags
  }
}

module registryAccess 'modules/registry-access.bicep' = {
  name: 'registry-access'
  scope: resourceGroup(registryGroup)
  params: {
    name: registryName
    principalId: identity.outputs.principalId
  }
  dependsOn: [
    registry
  ]
}

// ---- Network

module network 'modules/network.bicep' = if (privateEndpoints) {
  name: 'network'
  params: {
    name: '${name}-network'
    location: region
    tags: tags
    addressPrefix: networkAddressPrefix
    appsPrefix: appsAddressPrefix
    endpointsPrefix: endpointsAddressPrefix
  }
}

module eventHubsEndpoint 'modules/private-endpoint.bicep' = if (privateEndpoints && newNamespace) {
  name: 'event-hubs-endpoint'
  params: {
    name: '${name}-event-hubs'
    location: region
    tags: tags
    networkId: network.outputs.id
    subnetId: network.outputs.endpointsSubnetId
    serviceId: eventHubs.outputs.namespaceId
    groupId: 'namespace'
    zoneName: 'privatelink.servicebus.windows.net'
  }
}

module storageEndpoint 'modules/private-endpoint.bicep' = if (privateEndpoints && newStorage) {
  name: 'storage-endpoint'
  params: {
    name: '${name}-storage'
    location: region
    tags: tags
    networkId: network.outputs.id
    subnetId: network.outputs.endpointsSubnetId
    serviceId: storage.outputs.id
    groupId: 'blob'
    zoneName: 'privatelink.blob.${environment().suffixes.storage}'
  }
}

module cosmosEndpoint 'modules/private-endpoint.bicep' = if (privateEndpoints && newCosmos) {
  name: 'cosmos-endpoint'
  params: {
    name: '${name}-cosmos'
    location: region
    tags: tags
    networkId: network.outputs.id
    subnetId: network.outputs.endpointsSubnetId
    serviceId: cosmos.outputs.id
    groupId: 'Sql'
    zoneName: 'privatelink.documents.azure.com'
  }
}

// ---- Watching

module monitoring 'modules/monitoring.bicep' = {
  name: 'monitoring'
  params: {
    name: '${name}-${token}'
    location: region
    tags: tags
    retentionDays: logRetentionDays
    principalId: identity.outputs.principalId
  }
}

module alerts 'modules/alerts.bicep' = if (deployApps) {
  name: 'alerts'
  params: {
    name: name
    location: region
    tags: tags
    workspaceId: monitoring.outputs.workspaceId
    email: alertEmail
    actionGroupIds: alertActionGroupIds
    lagSeconds: alertLagSeconds
    minutesToLoss: alertMinutesToLoss
    deadLetters: alertDeadLetters
    checkpointAgeSeconds: alertCheckpointAgeSeconds
  }
}

// ---- The service and its jobs

module containerEnvironment 'modules/environment.bicep' = {
  name: 'environment'
  params: {
    name: '${name}-environment'
    location: region
    tags: tags
    workspaceId: monitoring.outputs.workspaceId
    subnetId: privateEndpoints ? network.outputs.appsSubnetId : ''
  }
}

module app 'modules/app.bicep' = if (deployApps) {
  name: 'app'
  params: {
    name: name
    location: region
    tags: tags
    environmentId: containerEnvironment.outputs.id
    identityId: identity.outputs.id
    registryServer: registryAccess.outputs.loginServer
    image: '${registryAccess.outputs.loginServer}/sluice:${imageTag}'
    settings: settings
    cpu: cpu
    memory: memory
    httpPort: httpPort
    minReplicas: minReplicas
    maxReplicas: mostReplicas
    eventHubNamespace: namespaceName
    eventHubName: eventhubName
    consumerGroup: eventhubConsumergroup
    storageAccountName: storageName
    blobContainer: blobContainer
    leaseMode: leaseMode
    unprocessedEventThreshold: scaleThreshold
  }
}

// Runs any command of the service inside the network: `config check --online` unless told otherwise.
module adminJob 'modules/job.bicep' = if (deployApps) {
  name: 'admin-job'
  params: {
    name: '${name}-admin'
    location: region
    tags: tags
    environmentId: containerEnvironment.outputs.id
    identityId: identity.outputs.id
    registryServer: registryAccess.outputs.loginServer
    image: '${registryAccess.outputs.loginServer}/sluice:${imageTag}'
    settings: settings
    command: [
      'sluice'
    ]
    arguments: [
      'config'
      'check'
      '--online'
    ]
    cpu: '0.5'
    memory: '1Gi'
    cron: ''
    timeoutSeconds: 3600
  }
}

module backfillJob 'modules/job.bicep' = if (deployApps && sparkEnabled) {
  name: 'backfill-job'
  params: {
    name: '${name}-backfill'
    location: region
    tags: tags
    environmentId: containerEnvironment.outputs.id
    identityId: identity.outputs.id
    registryServer: registryAccess.outputs.loginServer
    image: '${registryAccess.outputs.loginServer}/sluice-spark:${imageTag}'
    settings: settings
    command: [
      'python'
      '/opt/sluice/job.py'
    ]
    arguments: [
      '--reports'
      '${storageAccess.outputs.blobEndpoint}/${reportContainer}'
      'backfill'
      '--source'
      'capture'
      '--path'
      'blob://${captureContainer}'
      '--path-format'
      captureNameFormat
    ]
    cpu: sparkCpu
    memory: sparkMemory
    cron: ''
    timeoutSeconds: sparkTimeoutSeconds
  }
}

module reconcileJob 'modules/job.bicep' = if (deployApps && sparkEnabled) {
  name: 'reconcile-job'
  params: {
    name: '${name}-reconcile'
    location: region
    tags: tags
    environmentId: containerEnvironment.outputs.id
    identityId: identity.outputs.id
    registryServer: registryAccess.outputs.loginServer
    image: '${registryAccess.outputs.loginServer}/sluice-spark:${imageTag}'
    settings: settings
    command: [
      'python'
      '/opt/sluice/job.py'
    ]
    arguments: [
      '--reports'
      '${storageAccess.outputs.blobEndpoint}/${reportContainer}'
      'reconcile'
      '--source'
      'capture'
      '--path'
      'blob://${captureContainer}'
      '--path-format'
      captureNameFormat
    ]
    cpu: sparkCpu
    memory: sparkMemory
    cron: reconcileCron
    timeoutSeconds: sparkTimeoutSeconds
  }
}

// ---- What the scripts need to know

@description('Name of the container app.')
output appName string = name

@description('Name of the job that runs commands of the service.')
output adminJobName string = '${name}-admin'

@description('Name of the registry.')
output registryName string = registryName

@description('Host name of the namespace.')
output eventHubHostName string = eventHubsAccess.outputs.hostName

@description('Address of the storage account.')
output blobEndpoint string = storageAccess.outputs.blobEndpoint

@description('Address of the Cosmos account.')
output cosmosEndpoint string = cosmosAccess.outputs.endpoint

@description('Most replicas that may run.')
output mostReplicas int = mostReplicas

@description('Whose rate EVENTHUB_RATELIMIT is: of a replica or of the fleet.')
output rateScope string = rateScope

@description('Principal of the service, for rights on things of your own.')
output principalId string = identity.outputs.principalId
