metadata description = 'Database and container in a Cosmos account, new or existing. Left out where the container is your own.'

@description('Required. Name of the account.')
param accountName string

@description('Required. Name of the database.')
param databaseName string

@description('Required. Name of the container.')
param containerName string

@description('Required. Path of the partition key. Choose one with very many values: a hot one throttles alone.')
param partitionKeyPath string

@description('Required. fixed: throughput is what is paid for at all times. autoscale: a tenth of it up to all of it.')
@allowed([
  'fixed'
  'autoscale'
])
param throughputMode string

@description('Required. RU/s: fixed throughput, or the maximum of autoscale.')
param throughput int

@description('Required. Paths that queries use, such as /customer/?; all else is left out of the index, which makes writes cheaper. /* for everything but the stamp.')
param indexedPaths array

@description('Required. Name of the stamp, which is never indexed; empty for none.')
param stamp string

// The stamp is in no index: either all is excluded but what is named, or the stamp itself is.
var stampName = empty(stamp) ? '_etag' : stamp
var excludedPath = contains(indexedPaths, '/*') ? '/${stampName}/*' : '/*'

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' existing = {
  name: accountName
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2025-04-15' = {
  parent: account
  name: databaseName
  properties: {
    resource: {
      id: databaseName
    }
  }
}

resource container 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2025-04-15' = {
  parent: database
  name: containerName
  properties: {
    options: throughputMode == 'autoscale' ? {
      autoscaleSettings: {
        maxThroughput: throughput
      }
    } : {
      throughput: throughput
    }
    resource: {
      id: containerName
      partitionKey: {
        kind: 'Hash'
        paths: [
          partitionKeyPath
        ]
        version: 2
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [for path in indexedPaths: {
          path: path
        }]
        excludedPaths: [
          {
            path: excludedPath
          }
        ]
      }
    }
  }
}
