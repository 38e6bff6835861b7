metadata description = 'Log Analytics, Application Insights, and the right to send metrics.'

@description('Required. Start of every name.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Days that logs and metrics are kept.')
param retentionDays int

@description('Required. Principal that sends metrics.')
param principalId string

var roles = loadJsonContent('../roles.json')

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-02-01' = {
  name: '${name}-logs'
  location: location
  tags: tags
  properties: {
    retentionInDays: retentionDays
    sku: {
      name: 'PerGB2018'
    }
    features: {
      disableLocalAuth: true
      enableLogAccessUsingOnlyResourcePermissions: true
    }
  }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: '${name}-insights'
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    DisableLocalAuth: true
    IngestionMode: 'LogAnalytics'
    WorkspaceResourceId: workspace.id
  }
}

resource publisher 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(insights.id, principalId, roles.monitoringMetricsPublisher)
  scope: insights
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.monitoringMetricsPublisher)
  }
}

@description('Resource id of the workspace, for logs and alert rules.')
output workspaceId string = workspace.id

@description('Connection string of Application Insights: an address, not a secret, since keys are switched off.')
output connectionString string = insights.properties.ConnectionString
