import type { ServiceProcess } from './service-process';

/**
 * What a service process counts under a name, all its series together.
 *
 * @param labels only series that have them: `result="lost"`
 */
export async function processMetric({ opsPort }: ServiceProcess, name: string, labels = ''): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  const values = text.split('\n').filter((line) => line.startsWith(`${name}{`) && line.includes(labels));
  return values.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
