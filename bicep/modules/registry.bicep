metadata description = 'Container registry. Not used with a registry of your own.'

@description('Required. Name of the registry.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: 'Standard'
  }
  properties: {
    adminUserEnabled: false
    anonymousPullEnabled: false
  }
}
