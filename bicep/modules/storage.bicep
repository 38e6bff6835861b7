metadata description = 'Storage account for leases, checkpoints, dead letters, Capture and reports. Not used with an account of your own.'

@description('Required. Name of the account.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Redundancy, such as Standard_ZRS. A checkpoint that a fail-over loses is redone, not lost.')
param sku string

@description('Required. Whether the account answers on the public network.')
param publicNetworkAccess bool

resource account 'Microsoft.Storage/storageAccounts@2025-01-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: sku
  }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: publicNetworkAccess ? 'Enabled' : 'Disabled'
    supportsHttpsTrafficOnly: true
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: publicNetworkAccess ? 'Allow' : 'Deny'
    }
  }
}

// Soft delete gives a deleted checkpoint or dead letter back. No versioning: checkpoints are written every few seconds.
resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: {
      enabled: true
      days: 7
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: 7
    }
  }
}

@description('Resource id of the account.')
output id string = account.id
