metadata description = 'The service as a container app, scaled by KEDA on events that no checkpoint has passed.'

@description('Required. Name of the app.')
param name string

@description('Required. Region.')
param location string

@description('Required. Tags of every resource.')
param tags object

@description('Required. Container Apps environment.')
param environmentId string

@description('Required. Identity that pulls, reads, writes and scales.')
param identityId string

@description('Required. Registry that holds the image.')
param registryServer string

@description('Required. The image.')
param image string

@description('Required. Environment variables by name.')
param settings object

@description('Required. Cores of a replica, such as 1.0.')
param cpu string

@description('Required. Memory of a replica, such as 2Gi.')
param memory string

@description('Required. Port of the ops pages.')
param httpPort int

@description('Required. Replicas that always run.')
param minReplicas int

@description('Required. Most replicas.')
param maxReplicas int

@description('Required. Short name of the namespace, for KEDA.')
param eventHubNamespace string

@description('Required. Name of the hub, for KEDA.')
param eventHubName string

@description('Required. Consumer group, written exactly as the service gets it: in lease mode it is part of the blob names.')
param consumerGroup string

@description('Required. Storage account of the checkpoints, for KEDA.')
param storageAccountName string

@description('Required. Container of the checkpoints, for KEDA.')
param blobContainer string

@description('Required. LEASE_MODE: decides where KEDA looks for checkpoints.')
@allowed([
  'lease'
  'ownership'
])
param leaseMode string

@description('Required. Events behind that one replica may have before another starts.')
param unprocessedEventThreshold int

resource app 'Microsoft.App/containerApps@2025-01-01' = {
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
      // Two revisions meet only for the moment of a change; the epochs keep them apart.
      activeRevisionsMode: 'Single'
      ingress: {
        external: false
        allowInsecure: false
        targetPort: httpPort
        transport: 'http'
      }
      registries: [
        {
          server: registryServer
          identity: identityId
        }
      ]
    }
    template: {
      // SHUTDOWN_DEADLINE must end before this does.
      terminationGracePeriodSeconds: 60
      containers: [
        {
          name: 'sluice'
          image: image
          args: [
            'run'
          ]
          env: [for setting in items(settings): {
            name: setting.key
            value: setting.value
          }]
          resources: {
            cpu: json(cpu)
            memory: memory
          }
          probes: [
            {
              type: 'Startup'
              httpGet: {
                path: '/healthz'
                port: httpPort
              }
              periodSeconds: 5
              failureThreshold: 24
              timeoutSeconds: 3
            }
            {
              type: 'Liveness'
              httpGet: {
                path: '/healthz'
                port: httpPort
              }
              periodSeconds: 10
              failureThreshold: 6
              timeoutSeconds: 5
            }
            {
              type: 'Readiness'
              httpGet: {
                path: '/readyz'
                port: httpPort
              }
              periodSeconds: 10
              failureThreshold: 3
              timeoutSeconds: 5
            }
          ]
        }
      ]
      scale: {
        minReplicas: minReplicas
        maxReplicas: maxReplicas
        pollingInterval: 30
        cooldownPeriod: 300
        rules: [
          {
            name: 'lag'
            custom: {
              type: 'azure-eventhub'
              identity: identityId
              // KEDA lower-cases only the group, and only in blobMetadata; another case in the rest is another blob,
              // and a blob that is not found counts the whole retention as lag.
              metadata: {
                eventHubNamespace: toLower(eventHubNamespace)
                eventHubName: toLower(eventHubName)
                consumerGroup: consumerGroup
                storageAccountName: toLower(storageAccountName)
                blobContainer: toLower(blobContainer)
                checkpointStrategy: leaseMode == 'ownership' ? 'blobMetadata' : ''
                unprocessedEventThreshold: string(unprocessedEventThreshold)
                activationUnprocessedEventThreshold: '0'
              }
            }
          }
        ]
      }
    }
  }
}

@description('Host name inside the environment.')
output fqdn string = app.properties.configuration.ingress.fqdn
