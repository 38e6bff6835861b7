metadata description = 'The right to read and write documents of one container. Data-plane rights of Cosmos are its own, not Azure roles.'

@description('Required. Name of the account.')
param accountName string

@description('Required. Name of the database.')
param databaseName string

@description('Required. Name of the container.')
param containerName string

@description('Required. Principal of the service and its jobs.')
param principalId string

var roles = loadJsonContent('../roles.json')

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' existing = {
  name: accountName
}

resource contributor 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-04-15' = {
  parent: account
  name: guid(account.id, databaseName, containerName, principalId, roles.cosmosDataContributor)
  properties: {
    principalId: principalId
    roleDefinitionId: '${account.id}/sqlRoleDefinitions/${roles.cosmosDataContributor}'
    scope: '${account.id}/dbs/${databaseName}/colls/${containerName}'
  }
}

@description('Address of the account, for COSMOS_ENDPOINT.')
output endpoint string = account.properties.documentEndpoint
