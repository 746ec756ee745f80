/** Sends one parcel, twice under one key: `node examples/own-service/client.js`, with the server running. */
const { credentials, Metadata } = require('@grpc/grpc-js');
const {
  createClientInterceptor,
  newRequestId,
  policiesFromPackageDefinition,
  safeChannelOptions,
} = require('grpc-idempotency');
const { definition, ParcelsService } = require('./load-service');

const client = new ParcelsService(process.env.PARCELS_ADDRESS ?? '127.0.0.1:50070', credentials.createInsecure(), {
  ...safeChannelOptions(),
  interceptors: [createClientInterceptor({ policies: policiesFromPackageDefinition(definition) })],
});

function ship(address, requestId) {
  const metadata = new Metadata();
  metadata.set('request-id', requestId);
  return new Promise((resolve, reject) => {
    client.shipParcel({ address }, metadata, (error, response) => (error ? reject(error) : resolve(response.parcelId)));
  });
}

async function main() {
  const requestId = newRequestId(); // made where the intent is made, and kept with it
  console.log('shipped ', await ship('1 Main Street', requestId));
  console.log('retried ', await ship('1 Main Street', requestId));
}

main()
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  })
  .finally(() => client.close());
