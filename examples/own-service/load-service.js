/** The protos of the service, found among ours and those of this library. */
const path = require('node:path');
const { loadPackageDefinition } = require('@grpc/grpc-js');
const { loadSync } = require('@grpc/proto-loader');

const libraryProtos = path.join(path.dirname(require.resolve('grpc-idempotency/package.json')), 'proto');
const definition = loadSync('parcels.proto', { includeDirs: [__dirname, libraryProtos] });

module.exports = { definition, ParcelsService: loadPackageDefinition(definition).parcels.v1.ParcelsService };
