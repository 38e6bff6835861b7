metadata description = 'A Container Apps job: Spark backfill and reconciliation, and the check of a deployment.'

@description('Required. Name of the job, at most 31 characters.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Container Apps environment.')
param environmentId string

@description('Required. Identity that pulls, reads and writes.')
param identityId string

@description('Required. Registry that holds the image.')
param registryServer string

@description('Required. The image.')
param image string

@description('Required. Environment variables by name.')
param settings object

@description('Required. Program to start.')
param command array

@description('Required. Its arguments.')
param arguments array

@description('Required. Cores, such as 4.0 (the most that the Consumption profile gives).')
param cpu string

@description('Required. Memory, such as 8Gi.')
param memory string

@description('Required. When to start, as five cron fields in UTC; empty for by hand only.')
param cron string

@description('Required. Seconds after which a run is ended.')
param timeoutSeconds int

resource job 'Microsoft.App/jobs@2025-01-01' = {
  name: name
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      triggerType: empty(cron) ? 'Manual' : 'Schedule'
      manualTriggerConfig: empty(cron) ? {
        parallelism: 1
        replicaCompletionCount: 1
      } : null
      scheduleTriggerConfig: empty(cron) ? null : {
        cronExpression: cron
        parallelism: 1
        replicaCompletionCount: 1
      }
      // The jobs resume by themselves where they stopped, but a person should see why they did.
      replicaRetryLimit: 0
      replicaTimeout: timeoutSeconds
      registries: [
        {
          server: registryServer
          identity: identityId
        }
      ]
    }
    template: {
      containers: [
        {
          name: 'sluice'
          image: image
          command: command
          args: arguments
          env: [for setting in items(settings): {
            name: setting.key
            value: setting.value
          }]
          resources: {
            cpu: json(cpu)
            memory: memory
          }
          volumeMounts: [
            {
              volumeName: 'scratch'
              mountPath: '/tmp'
            }
          ]
        }
      ]
      volumes: [
        {
          name: 'scratch'
          storageType: 'EmptyDir'
        }
      ]
    }
  }
}
