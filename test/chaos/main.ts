/**
 * Breaks everything at once and checks the books: `npm run chaos -- [--seed N] [--seconds N] [--processes N] [--callers N]`.
 * Services with clocks that differ, their database, the card network and the connections between them are killed, frozen,
 * cut and restarted while callers pay and give back under keys (design 8.3). The seed plans what goes wrong and when; how the
 * processes meet it is up to the machine. Exit code 1 where the books do not agree.
 */
import { parseArgs } from 'node:util';
import { runChaos } from './run';

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      seconds: { type: 'string', default: '30' },
      processes: { type: 'string', default: '3' },
      callers: { type: 'string', default: '12' },
    },
  });
  const [seed, seconds, processes, callers] = (['seed', 'seconds', 'processes', 'callers'] as const).map((name) =>
    wholeNumber(name, values[name]),
  ) as [number, number, number, number];
  console.log(`seed ${seed}: ${processes} services, ${callers} callers, ${seconds} s`);
  const report = await runChaos({
    ...{ seed, processes, callers, forMs: seconds * 1_000 },
    onFault: ({ atMs, fault: { kind, ...how } }) =>
      console.log(`${(atMs / 1_000).toFixed(1).padStart(6)} s  ${kind} ${JSON.stringify(how)}`),
  });
  const faults = [...report.faults].map(([kind, times]) => `${kind} ${times}`).join(', ');
  console.log(`faults: ${faults}`);
  console.log(
    `${report.payments} payments, ${report.refunds} refunds; ${report.answers} answers, ${report.retries} calls were made ` +
      `again, ${report.takeovers} keys taken over`,
  );
  for (const line of report.wrong) console.log(`wrong: ${line}`);
  console.log(
    report.wrong.length === 0 ? 'the books agree' : `${report.wrong.length} things are wrong; again: --seed ${seed}`,
  );
  return report.wrong.length === 0;
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || (number === 0 && name !== 'seed')) {
    throw new TypeError(`--${name}: expected a whole number from ${name === 'seed' ? 0 : 1} on, got ${text}`);
  }
  return number;
}

main().then(
  (agrees) => process.exit(agrees ? 0 : 1),
  (error: unknown) => {
    console.error(error instanceof TypeError ? error.message : error);
    process.exit(2);
  },
);
