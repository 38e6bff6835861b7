metadata description = 'A user-assigned identity.'

@description('Required. Name of the identity.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

@description('Resource id, for the container app and its jobs.')
output id string = identity.id

@description('Principal id, for role assignments.')
output principalId string = identity.properties.principalId

@description('Client id, for AZURE_CLIENT_ID.')
output clientId string = identity.properties.clientId
