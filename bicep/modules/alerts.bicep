metadata description = 'Alert rules on the metrics that the service sends. What to do about each stands in deploy/RUNBOOK.md.'

@description('Required. Start of every name.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Workspace that holds the metrics.')
param workspaceId string

@description('Required. Address that gets alerts; empty for none.')
param email string

@description('Required. Resource ids of action groups of your own.')
param actionGroupIds array

@description('Required. Seconds behind above which to alert.')
param lagSeconds int

@description('Required. Minutes until retention takes unread events, below which to alert.')
param minutesToLoss int

@description('Required. Dead letters in five minutes above which to alert.')
param deadLetters int

@description('Required. Age of the oldest checkpoint in seconds above which to alert.')
param checkpointAgeSeconds int

// Names as in service/ops/telemetry.py; Azure Monitor keeps them as they are.
var rules = [
  {
    name: 'lag'
    metric: 'sluice.lag'
    aggregate: 'max(Max)'
    operator: 'GreaterThan'
    threshold: lagSeconds
    severity: 2
    description: 'The service is too far behind the hub.'
  }
  {
    name: 'minutes-to-loss'
    metric: 'sluice.minutes_to_loss'
    aggregate: 'min(Min)'
    operator: 'LessThan'
    threshold: minutesToLoss
    severity: 1
    description: 'Retention will soon take events that were not read.'
  }
  {
    name: 'events-lost'
    metric: 'sluice.events.lost_to_retention'
    aggregate: 'sum(Sum)'
    operator: 'GreaterThan'
    threshold: 0
    severity: 0
    description: 'Retention took events before they were read.'
  }
  {
    name: 'dead-letters'
    metric: 'sluice.records.dead_lettered'
    aggregate: 'sum(Sum)'
    operator: 'GreaterThan'
    threshold: deadLetters
    severity: 3
    description: 'Records could not be committed and were kept as dead letters.'
  }
  {
    name: 'no-checkpoint'
    metric: 'sluice.checkpoint.age'
    aggregate: 'max(Max)'
    operator: 'GreaterThan'
    threshold: checkpointAgeSeconds
    severity: 1
    description: 'A partition has work but its checkpoint does not move.'
  }
]

resource mail 'Microsoft.Insights/actionGroups@2023-01-01' = if (!empty(email)) {
  name: '${name}-mail'
  location: 'global'
  tags: tags
  properties: {
    groupShortName: 'sluice'
    enabled: true
    emailReceivers: [
      {
        name: 'operator'
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

var actionGroups = empty(email) ? actionGroupIds : concat(actionGroupIds, [
  mail.id
])

resource alerts 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = [for rule in rules: {
  name: '${name}-${rule.name}'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: '${name}: ${rule.name}'
    description: rule.description
    enabled: true
    severity: rule.severity
    scopes: [
      workspaceId
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    // The table is made when the first metric arrives, which is after the first deployment.
    skipQueryValidation: true
    criteria: {
      allOf: [
        {
          query: 'AppMetrics | where Name == "${rule.metric}" | summarize value = ${rule.aggregate} | where isnotnull(value)'
          metricMeasureColumn: 'value'
          timeAggregation: 'Maximum'
          operator: rule.operator
          threshold: rule.threshold
          failingPeriods: {
            numberOfEvaluationPeriods: 1
            minFailingPeriodsToAlert: 1
          }
        }
      ]
    }
    actions: {
      actionGroups: actionGroups
    }
  }
}]

// Whatever else is wrong, a service that says nothing at all has written no checkpoint either.
resource silence 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${name}-silence'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: '${name}: silence'
    description: 'No metric has come for a quarter of an hour.'
    enabled: true
    severity: 1
    scopes: [
      workspaceId
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    skipQueryValidation: true
    criteria: {
      allOf: [
        {
          query: 'AppMetrics | where Name startswith "sluice." | summarize value = count()'
          metricMeasureColumn: 'value'
          timeAggregation: 'Maximum'
          operator: 'LessThan'
          threshold: 1
          failingPeriods: {
            numberOfEvaluationPeriods: 1
            minFailingPeriodsToAlert: 1
          }
        }
      ]
    }
    actions: {
      actionGroups: actionGroups
    }
  }
}
