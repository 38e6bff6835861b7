metadata description = 'Container Apps environment. Logs go to the workspace by a diagnostic setting, so that no key is needed.'

@description('Required. Name of the environment.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Workspace that gets the logs.')
param workspaceId string

@description('Required. Subnet of the environment; empty for none.')
param subnetId string

resource containerEnvironment 'Microsoft.App/managedEnvironments@2025-01-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    appLogsConfiguration: {
      destination: 'azure-monitor'
    }
    vnetConfiguration: empty(subnetId) ? null : {
      infrastructureSubnetId: subnetId
      internal: true
    }
    workloadProfiles: [
      {
        name: 'Consumption'
        workloadProfileType: 'Consumption'
      }
    ]
    zoneRedundant: !empty(subnetId)
  }
}

resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'logs'
  scope: containerEnvironment
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        categoryGroup: 'allLogs'
        enabled: true
      }
    ]
  }
}

@description('Resource id of the environment.')
output id string = containerEnvironment.id

@description('Domain of its apps.')
output defaultDomain string = containerEnvironment.properties.defaultDomain
