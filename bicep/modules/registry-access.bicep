metadata description = 'The right to pull images from a registry, new or existing.'

@description('Required. Name of the registry.')
param name string

@description('Required. Principal that pulls.')
param principalId string

var roles = loadJsonContent('../roles.json')

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' existing = {
  name: name
}

resource pull 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, principalId, roles.acrPull)
  scope: registry
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.acrPull)
  }
}

@description('Host name of the registry.')
output loginServer string = registry.properties.loginServer
