import { parseArgs } from 'node:util';
import { type Command, EXIT } from './command';
import { readPolicies } from './read-policies';
import { serviceConfigOf } from './service-config';

/** `service-config`: prints what stock clients, which know no keys, may do with the methods of a descriptor set. */
export const serviceConfigCommand: Command = {
  name: 'service-config',
  usage: '[--service <full name>]… [<descriptor set> | -]…',
  summary: 'print gRPC service config for stock clients, with retries only where they are safe',
  details: [
    'safe is what may run twice by its level, and what the server runs once by its key',
    "of descriptor sets, as buf and protoc write them; default: this package's protos",
  ],
  example: 'grpc-idempotency service-config --service payments.v1.PaymentsService > service-config.json',
  run: async ({ args, print }) => {
    const options = { service: { type: 'string', multiple: true } } as const;
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const { policies, faults } = readPolicies(positionals, values.service ?? []);
    for (const fault of faults) print(fault);
    if (faults.length > 0) return EXIT.refused;
    print(JSON.stringify(serviceConfigOf(policies), null, 2));
    return EXIT.ok;
  },
};
