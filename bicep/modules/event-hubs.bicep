metadata description = 'Event Hubs namespace and hub, with Capture. Not used with a hub of your own.'

@description('Required. Name of the namespace.')
param namespaceName string

@description('Required. Name of the hub.')
param hubName string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Partitions of the hub: the most replicas that can ever work side by side.')
@minValue(1)
@maxValue(32)
param partitionCount int

@description('Required. Hours that events are kept.')
param retentionHours int

@description('Required. Throughput units: each takes in 1 MB/s or 1,000 events/s and gives out 2 MB/s or 4,096 events/s.')
param throughputUnits int

@description('Required. Whether Capture writes every event to blob storage, for backfill and reconciliation.')
param captureEnabled bool

@description('Required. Identity that writes Capture files.')
param captureIdentityId string

@description('Required. Storage account of Capture.')
param captureStorageAccountId string

@description('Required. Blob container of Capture.')
param captureContainer string

@description('Required. Path of Capture files; the Spark jobs read the same format.')
param captureNameFormat string

@description('Required. Whether the namespace answers on the public network.')
param publicNetworkAccess bool

resource namespace 'Microsoft.EventHub/namespaces@2024-01-01' = {
  name: namespaceName
  location: location
  tags: tags
  sku: {
    name: 'Standard'
    tier: 'Standard'
    capacity: throughputUnits
  }
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${captureIdentityId}': {}
    }
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: publicNetworkAccess ? 'Enabled' : 'Disabled'
    zoneRedundant: true
  }
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' = {
  parent: namespace
  name: hubName
  properties: {
    partitionCount: partitionCount
    retentionDescription: {
      cleanupPolicy: 'Delete'
      retentionTimeInHours: retentionHours
    }
    captureDescription: captureEnabled ? {
      enabled: true
      encoding: 'Avro'
      intervalInSeconds: 300
      sizeLimitInBytes: 314572800
      skipEmptyArchives: true
      destination: {
        name: 'EventHubArchive.AzureBlockBlob'
        identity: {
          type: 'UserAssigned'
          userAssignedIdentity: captureIdentityId
        }
        properties: {
          storageAccountResourceId: captureStorageAccountId
          blobContainer: captureContainer
          archiveNameFormat: captureNameFormat
        }
      }
    } : null
  }
}

@description('Resource id of the namespace, for its private endpoint.')
output namespaceId string = namespace.id
