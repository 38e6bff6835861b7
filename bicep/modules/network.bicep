metadata description = 'Virtual network with a subnet for the apps and one for private endpoints.'

@description('Required. Name of the network.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Address space of the network.')
param addressPrefix string

@description('Required. Address space of the apps within it, a /27 or larger.')
param appsPrefix string

@description('Required. Address space of the private endpoints within it.')
param endpointsPrefix string

resource network 'Microsoft.Network/virtualNetworks@2024-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [
        addressPrefix
      ]
    }
    subnets: [
      {
        name: 'apps'
        properties: {
          addressPrefix: appsPrefix
          delegations: [
            {
              name: 'apps'
              properties: {
                serviceName: 'Microsoft.App/environments'
              }
            }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: {
          addressPrefix: endpointsPrefix
          privateEndpointNetworkPolicies: 'Disabled'
        }
      }
    ]
  }
}

@description('Resource id of the network.')
output id string = network.id

@description('Subnet of the Container Apps environment.')
output appsSubnetId string = '${network.id}/subnets/apps'

@description('Subnet of the private endpoints.')
output endpointsSubnetId string = '${network.id}/subnets/endpoints'
