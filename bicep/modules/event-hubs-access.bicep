metadata description = 'What the service needs of a hub, new or existing: consumer groups and the right to read.'

@description('Required. Name of the namespace.')
param namespaceName string

@description('Required. Name of the hub.')
param hubName string

@description('Required. Consumer groups to make: that of the service and that of the Spark jobs.')
param consumerGroups array

@description('Required. Principal that reads, and that KEDA asks with.')
param principalId string

var roles = loadJsonContent('../roles.json')

resource namespace 'Microsoft.EventHub/namespaces@2024-01-01' existing = {
  name: namespaceName
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' existing = {
  parent: namespace
  name: hubName
}

// $Default is always there and cannot be made.
resource groups 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2024-01-01' = [for group in consumerGroups: if (toLower(group) != '$default') {
  parent: hub
  name: group
  properties: {
    userMetadata: 'sluice'
  }
}]

resource receiver 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(hub.id, principalId, roles.eventHubsDataReceiver)
  scope: hub
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.eventHubsDataReceiver)
  }
}

@description('Host name of the namespace, for EVENTHUB_NAMESPACE.')
output hostName string = '${toLower(namespaceName)}.servicebus.windows.net'
