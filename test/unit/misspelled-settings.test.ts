import { misspelledSettings } from '../../src/misspelled-settings';

test.each([
  ['GRPC_PROT', 'GRPC_PORT'],
  ['GRPC_PORTS', 'GRPC_PORT'],
  ['GRP_PORT', 'GRPC_PORT'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['RESUME_INTERVAL', 'RESUME_INTERVAL_MS'],
  ['CARD_NETWORK_FAULT', 'CARD_NETWORK_FAULTS'],
])('%s is taken for %s', (variable, nearest) => {
  expect(misspelledSettings({ [variable]: 's3cret', GRPC_HOST: 'x' })).toEqual([{ variable, nearest }]);
});

test.each(['GRPC_PORT', 'PATH', 'HOST', 'APP_PORT', 'GRPC', 'GRPC_TRACE', 'DATA', 'NODE_OPTIONS', 'OPS_PROTS'])(
  '%s is left alone',
  (variable) => {
    expect(misspelledSettings({ [variable]: 'x' })).toEqual([]);
  },
);

test('a swap is one of neighbours', () => {
  expect(misspelledSettings({ GRPC_PXRT: 'x' })).toHaveLength(1);
  expect(misspelledSettings({ GRPC_PXXT: 'x' })).toEqual([]);
});
