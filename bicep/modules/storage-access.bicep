metadata description = 'Containers and rights in a storage account, new or existing. Each right is on one container.'

@description('Required. Name of the account.')
param accountName string

@description('Required. Container for leases and checkpoints.')
param leaseContainer string

@description('Required. Container for dead letters.')
param deadLetterContainer string

@description('Required. Container for plans and budgets of the Spark jobs.')
param jobsContainer string

@description('Required. Container for the reports of the Spark jobs.')
param reportContainer string

@description('Required. Container that Capture writes and the Spark jobs read.')
param captureContainer string

@description('Required. Principal of the service and its jobs.')
param principalId string

@description('Required. Principal that Capture writes with; empty where the hub is your own.')
param capturePrincipalId string

var roles = loadJsonContent('../roles.json')

resource account 'Microsoft.Storage/storageAccounts@2025-01-01' existing = {
  name: accountName
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' existing = {
  parent: account
  name: 'default'
}

resource leases 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: leaseContainer
  properties: {
    publicAccess: 'None'
  }
}

resource deadLetters 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: deadLetterContainer
  properties: {
    publicAccess: 'None'
  }
}

resource jobs 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: jobsContainer
  properties: {
    publicAccess: 'None'
  }
}

resource reports 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: reportContainer
  properties: {
    publicAccess: 'None'
  }
}

resource capture 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: captureContainer
  properties: {
    publicAccess: 'None'
  }
}

// Also enough for KEDA, which reads checkpoints with the same identity.
resource writesLeases 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(leases.id, principalId, roles.storageBlobDataContributor)
  scope: leases
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

resource writesDeadLetters 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(deadLetters.id, principalId, roles.storageBlobDataContributor)
  scope: deadLetters
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

resource writesJobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(jobs.id, principalId, roles.storageBlobDataContributor)
  scope: jobs
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

resource writesReports 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(reports.id, principalId, roles.storageBlobDataContributor)
  scope: reports
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

resource readsCapture 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(capture.id, principalId, roles.storageBlobDataReader)
  scope: capture
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataReader)
  }
}

resource writesCapture 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(capturePrincipalId)) {
  name: guid(capture.id, capturePrincipalId, roles.storageBlobDataContributor)
  scope: capture
  properties: {
    principalId: capturePrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

@description('Resource id of the account, for Capture and private endpoints.')
output accountId string = account.id

@description('Address of the account, for BLOB_ACCOUNT_URL.')
output blobEndpoint string = 'https://${toLower(accountName)}.blob.${environment().suffixes.storage}'
