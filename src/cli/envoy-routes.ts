import { isObject, listOf, type Plain } from './plain-object';

/** One route of a virtual host, as far as it decides about retries. */
export interface EnvoyRoute {
  /** `virtual host "payments", route 1 "by-prefix"` */
  readonly place: string;
  /** Whether a gRPC path may take this route. */
  readonly matches: (path: string) => boolean;
  /** Whether every call of a path that matches takes it: nothing else (headers, a share of the traffic) decides too. */
  readonly always: boolean;
  /** What is retried, as in `retry_on`. */
  readonly retryOn: readonly string[];
  /** Whether a second request may be sent while the first still runs. */
  readonly hedges: boolean;
  /** Whether retries are decided by an extension, which can't be read here. */
  readonly opaque: boolean;
}

/**
 * The virtual hosts in a document of Envoy, wherever they stand (a bootstrap, a route configuration, one of several
 * resources), each with its routes in their order. Names may be in snake case or camel case, as Envoy takes both.
 */
export function envoyVirtualHosts(document: unknown): readonly (readonly EnvoyRoute[])[] {
  return hostsIn(document, []);
}

/** @param inherited what headers of the objects around it ask for */
function hostsIn(document: unknown, inherited: readonly string[]): readonly (readonly EnvoyRoute[])[] {
  if (Array.isArray(document)) return document.flatMap((one: unknown) => hostsIn(one, inherited));
  if (!isObject(document)) return [];
  const asked = [...inherited, ...askedByHeaders(document)];
  const own = field(document, 'routes');
  const listed = Array.isArray(own) ? [routesOf(document, own, asked)] : [];
  const matcher = field(document, 'matcher');
  // A tree of conditions in place of a list: any of its routes may be taken.
  if (isObject(matcher) && field(document, 'domains') !== undefined) {
    return [...listed, routesOf(document, routesIn(matcher), asked).map((route) => ({ ...route, always: false }))];
  }
  return [...listed, ...Object.values(document).flatMap((one) => hostsIn(one, asked))];
}

/** The routes in the actions of a matcher. */
function routesIn(part: unknown): readonly Plain[] {
  if (Array.isArray(part)) return part.flatMap(routesIn);
  if (!isObject(part)) return [];
  return isObject(field(part, 'route')) ? [part] : Object.values(part).flatMap(routesIn);
}

function routesOf(host: Plain, routes: readonly unknown[], asked: readonly string[]): readonly EnvoyRoute[] {
  return routes.filter(isObject).map((route, index) => {
    const action = objectField(route, 'route');
    const own = field(action, 'retry_policy') ?? field(action, 'retry_policy_typed_config');
    const inherited = own === undefined ? host : action;
    const policy = objectField(inherited, 'retry_policy');
    const match = objectField(route, 'match');
    const name = field(route, 'name');
    const hedging = field(action, 'hedge_policy') === undefined ? host : action;
    const forwards = field(route, 'route') !== undefined;
    return {
      place: `virtual host "${text(field(host, 'name'))}", route ${index + 1}${name === undefined ? '' : ` "${text(name)}"`}`,
      matches: (path) => (isRewritten(action) ? mayBecome(action, path) : matchesPath(match, path)),
      always: !isRewritten(action) && Object.keys(match).every((key) => PATH_CONDITIONS.includes(snakeCase(key))),
      retryOn: forwards
        ? [...wordsOf(field(policy, 'retry_on')), ...asked, ...askedByHeaders(route), ...askedByClusters(action)]
        : [],
      hedges: forwards && field(objectField(hedging, 'hedge_policy'), 'hedge_on_per_try_timeout') === true,
      opaque: forwards && field(inherited, 'retry_policy_typed_config') !== undefined,
    };
  });
}

/** Headers by which a request asks Envoy for retries. The router reads them after it has added those of the routes. */
const RETRY_HEADERS: readonly string[] = ['x-envoy-retry-on', 'x-envoy-retry-grpc-on'];

/** What the headers that are added here ask to be retried, as in `retry_on`. */
function askedByHeaders(object: Plain): readonly string[] {
  return listOf(field(object, 'request_headers_to_add'))
    .filter(isObject)
    .map((option) => objectField(option, 'header'))
    .filter((header) => RETRY_HEADERS.includes(text(field(header, 'key')).toLowerCase()))
    .flatMap((header) => wordsOf(field(header, 'value')));
}

function askedByClusters(action: Plain): readonly string[] {
  return listOf(field(objectField(action, 'weighted_clusters'), 'clusters'))
    .filter(isObject)
    .flatMap(askedByHeaders);
}

/** What makes another path of the one that was matched. */
const REWRITES: readonly string[] = ['prefix_rewrite', 'regex_rewrite', 'path_rewrite', 'path_rewrite_policy'];

function isRewritten(action: Plain): boolean {
  return REWRITES.some((rewrite) => field(action, rewrite) !== undefined);
}

/** Whether a route that rewrites paths may send this one. Of a pattern it is not told. */
function mayBecome(action: Plain, path: string): boolean {
  const prefix = field(action, 'prefix_rewrite');
  return typeof prefix !== 'string' || path.startsWith(prefix);
}

/** The parts of a match that a path alone decides; `grpc` is true of every call that is meant here. */
const PATH_CONDITIONS: readonly string[] = [
  'prefix',
  'path',
  'path_separated_prefix',
  'safe_regex',
  'case_sensitive',
  'grpc',
];

function matchesPath(match: Plain, path: string): boolean {
  const folded = field(match, 'case_sensitive') === false;
  const fold = (value: string): string => (folded ? value.toLowerCase() : value);
  const prefix = field(match, 'prefix');
  const whole = field(match, 'path');
  const separated = field(match, 'path_separated_prefix');
  const pattern = field(objectField(match, 'safe_regex'), 'regex');
  if (typeof prefix === 'string') return fold(path).startsWith(fold(prefix));
  if (typeof whole === 'string') return fold(path) === fold(whole);
  if (typeof separated === 'string') return `${fold(path)}/`.startsWith(`${fold(separated)}/`);
  if (typeof pattern === 'string') return matchesPattern(pattern, path);
  // A template, or what Envoy learned since: it may match.
  return true;
}

function matchesPattern(pattern: string, path: string): boolean {
  try {
    return new RegExp(`^(?:${pattern})$`).test(path);
  } catch {
    // RE2 knows what JavaScript doesn't: then it may match.
    return true;
  }
}

/** The words of a list with commas. */
function wordsOf(list: unknown): readonly string[] {
  if (typeof list !== 'string') return [];
  return list
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

function objectField(object: Plain, name: string): Plain {
  const value = field(object, name);
  return isObject(value) ? value : {};
}

/** A field by its name in snake case, spelt so or in camel case. */
function field(object: Plain, name: string): unknown {
  return object[name] ?? object[name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())];
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
