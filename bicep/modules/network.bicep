metadata description = 'Virtual network with a subnet for the apps and one for private endpoints.'

@description('Required. Name of the network.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Address space, a /22 or larger; the first /23 is for the apps, the /24 after it for the endpoints.')
param addressPrefix string

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
          addressPrefix: cidrSubnet(addressPrefix, 23, 0)
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
          addressPrefix: cidrSubnet(addressPrefix, 24, 2)
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
