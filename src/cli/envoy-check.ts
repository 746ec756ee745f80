import { parseAllDocuments } from 'yaml';
import type { MethodPolicy } from '../idempotency/index';
import { type EnvoyRoute, envoyVirtualHosts } from './envoy-routes';
import { resendSafety } from './resend-safety';

/**
 * What Envoy retries only where the request provably reached no server: its headers were not sent, no connection was
 * made, or the other side says that it did not process the stream.
 */
const UNDELIVERED: readonly string[] = ['reset-before-request', 'connect-failure', 'refused-stream'];

/**
 * What the routes of Envoy would send twice that is unsafe to send twice.
 *
 * @param file its name, for what is printed
 * @param text YAML or JSON, with virtual hosts anywhere in it
 * @returns one line each: the file, the route, the method, the remedy
 */
export function envoyFaults(file: string, text: string, policies: readonly MethodPolicy[]): readonly string[] {
  const documents = parseAllDocuments(text, { merge: true });
  const errors = [...documents].flatMap((document) => document.errors);
  if (errors.length > 0) return errors.map(({ message }) => `${file}: expected YAML: ${message.split('\n')[0] ?? ''}`);
  const hosts = [...documents].flatMap((document) => envoyVirtualHosts(document.toJS()));
  if (hosts.length === 0) return [`${file}: expected a virtual host with routes`];
  return hosts.flatMap((routes) =>
    policies.flatMap((policy) => routesTaken(routes, policy.path).flatMap((route) => routeFaults(file, route, policy))),
  );
}

/** The first route that matches is taken; the next one too where more than the path decides. */
function routesTaken(routes: readonly EnvoyRoute[], path: string): readonly EnvoyRoute[] {
  const matching = routes.filter(({ matches }) => matches(path));
  const last = matching.findIndex(({ always }) => always);
  return last < 0 ? matching : matching.slice(0, last + 1);
}

function routeFaults(file: string, route: EnvoyRoute, policy: MethodPolicy): readonly string[] {
  const safety = resendSafety(policy);
  if (safety.kind !== 'unsafe') return [];
  const unsafe = [
    ...route.retryOn
      .filter((condition) => !UNDELIVERED.includes(condition))
      .map((condition) => `retry_on ${condition}`),
    ...(route.hedges ? ['hedge_on_per_try_timeout'] : []),
    ...(route.opaque ? ['retry_policy_typed_config'] : []),
  ];
  if (unsafe.length === 0) return [];
  return [
    `${file}: ${route.place}: ${policy.path}: unsafe: ${unsafe.join(', ')}, since ${safety.why}; ` +
      `retry_on reset-before-request alone, or ${safety.remedy}`,
  ];
}
