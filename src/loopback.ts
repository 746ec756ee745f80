import { isIPv4 } from 'node:net';

/** Whether only this machine reaches what listens on an address: 127.0.0.0/8, `::1` or `localhost`. Nothing is resolved. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
