import { runCommand } from '../../src/cli/run-command';
import type { ServiceConfig } from '../../src/cli/service-config';
import { serviceConfigCommand } from '../../src/cli/service-config-command';
import { check, file, methodsIn, set } from '../support/check-proto';
import { compileProto } from '../support/compile-proto';

const faultsOf = async (config: unknown) =>
  (await check('--service-config', file('config.json', JSON.stringify(config)), set)).faults;

const retryPolicy = {
  ...{ maxAttempts: 3, initialBackoff: '0.1s', maxBackoff: '1s', backoffMultiplier: 2 },
  retryableStatusCodes: ['UNAVAILABLE'],
};

describe('a service config', () => {
  it('in which a name comes twice is a fault: channels refuse all of it', async () => {
    const name = [{ service: 't.v1.S', method: 'Ignored' }];
    expect(await faultsOf({ methodConfig: [{ name }, { name, retryPolicy }] })).toEqual(
      expect.arrayContaining([expect.stringContaining('is named before; channels refuse the whole config')]),
    );
  });

  it.each([
    ['inside another object', { serviceConfig: { methodConfig: [{ name: [{}], retryPolicy }] } }, 'serviceConfig'],
    ['in snake case', { method_config: [{ name: [{}], retry_policy: {} }] }, 'method_config'],
  ])('%s is none', async (_, config, named) => {
    expect(await faultsOf(config)).toEqual([expect.stringContaining(`expected a service config, got ${named}`)]);
  });

  it('that only throttles is one', async () => {
    expect(await faultsOf({ retryThrottling: { maxTokens: 10, tokenRatio: 0.1 } })).toEqual([]);
  });

  it('for everything is judged for each method', async () => {
    expect(methodsIn(await faultsOf({ methodConfig: [{ name: [{}], retryPolicy }] }))).toHaveLength(6);
  });
});

it('service-config gives streams no deadline, since they may be meant to last, and keeps the retries of safe ones', async () => {
  const printed: string[] = [];
  const proto = `syntax = "proto3"; package w.v1; message M {}
    service W {
      rpc Watch(M) returns (stream M) { option idempotency_level = NO_SIDE_EFFECTS; }
      rpc Talk(stream M) returns (stream M);
      rpc Get(M) returns (M) { option idempotency_level = NO_SIDE_EFFECTS; }
    }`;
  await runCommand({
    ...{ commands: [serviceConfigCommand], args: ['service-config', file('stream.binpb', compileProto(proto))] },
    ...{
      environment: {},
      print: (line: string) => printed.push(line),
      printError: (line: string) => printed.push(line),
    },
  });
  const { methodConfig } = JSON.parse(printed.join('\n')) as ServiceConfig;
  const entryOf = (method: string) => methodConfig.find(({ name }) => name.some((each) => each.method === method));
  expect(entryOf('Watch')).toEqual({ name: expect.anything() as unknown, retryPolicy: expect.anything() as unknown });
  expect(entryOf('Talk')).toEqual({ name: expect.anything() as unknown });
  expect(entryOf('Get')).toMatchObject({ timeout: '30s', retryPolicy: { retryableStatusCodes: ['UNAVAILABLE'] } });
});
