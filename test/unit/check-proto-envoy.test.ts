import { check, file, methodsIn, set, UNSAFE } from '../support/check-proto';

describe('check-proto --envoy', () => {
  const route = (retries: string, match = 'prefix: "/"') => `
    virtual_hosts:
      - name: shop
        routes:
          - match: {${match}}
            route: {cluster: shop, ${retries}}`;
  const checkRoutes = async (yaml: string) => check('--envoy', file('envoy.yaml', yaml), set);
  const methodsOf = async (yaml: string) => methodsIn((await checkRoutes(yaml)).faults);

  it('names every method that a route would retry unsafely, with the route and the remedy', async () => {
    const { code, faults } = await checkRoutes(route('retry_policy: {retry_on: "5xx, reset-before-request, reset"}'));
    expect(code).toBe(1);
    expect(methodsIn(faults)).toEqual(UNSAFE);
    expect(faults[0]).toMatch(
      /envoy\.yaml: virtual host "shop", route 1: \/t.v1.S\/Ignored: unsafe: retry_on 5xx, retry_on reset, since .*; retry_on reset-before-request alone, or require a key/,
    );
  });

  it.each<[string, string, string[]]>([
    ['nothing is retried', route(''), []],
    ['an empty retry_on', route('retry_policy: {num_retries: 3}'), []],
    [
      'what reached no server',
      route('retry_policy: {retry_on: "reset-before-request,connect-failure,refused-stream"}'),
      [],
    ],
    ['another prefix', route('retry_policy: {retry_on: 5xx}', 'prefix: "/t.v2."'), []],
    ['a whole path', route('retry_policy: {retry_on: 5xx}', 'path: "/t.v1.S/Ignored"'), ['/t.v1.S/Ignored']],
    [
      'a folded path',
      route('retry_policy: {retry_on: 5xx}', 'path: "/T.V1.S/IGNORED", case_sensitive: false'),
      ['/t.v1.S/Ignored'],
    ],
    ['a part of the path', route('retry_policy: {retry_on: 5xx}', 'path_separated_prefix: "/t.v1.S"'), UNSAFE],
    ['less than a part', route('retry_policy: {retry_on: 5xx}', 'path_separated_prefix: "/t.v1"'), []],
    [
      'a pattern',
      route('retry_policy: {retry_on: 5xx}', 'safe_regex: {regex: ".*/(Ignored|Safe)"}'),
      ['/t.v1.S/Ignored'],
    ],
    [
      'a pattern that is not ours to read',
      route('retry_policy: {retry_on: 5xx}', 'safe_regex: {regex: "(?P<x>.*)"}'),
      UNSAFE,
    ],
    ['what may match', route('retry_policy: {retry_on: 5xx}', 'path_match_policy: {}'), UNSAFE],
    ['hedging', route('hedge_policy: {hedge_on_per_try_timeout: true}'), UNSAFE],
    ['an extension', route('retry_policy_typed_config: {"@type": x}'), UNSAFE],
    [
      'camel case',
      `{"virtualHosts": [{"name": "shop", "routes": [{"match": {"path": "/t.v1.S/Ignored"}, "route": {"retryPolicy": {"retryOn": "5xx"}}}]}]}`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'a host for all its routes',
      `
virtual_hosts:
  - name: shop
    retry_policy: {retry_on: unavailable}
    routes:
      - {match: {path: /t.v1.S/Optional}, route: {cluster: shop, retry_policy: {retry_on: connect-failure}}}
      - {match: {path: /t.v1.S/Observed}, direct_response: {status: 503}}
      - {match: {path: /t.v1.S/Ignored}, route: {cluster: shop}}`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'the first route that matches',
      `
virtual_hosts:
  - name: shop
    routes:
      - {match: {path: /t.v1.S/Ignored}, route: {cluster: shop}}
      - {match: {path: /t.v1.S/Optional, headers: [{name: beta, present_match: true}]}, route: {cluster: beta}}
      - {match: {prefix: /t.v1.S/, grpc: {}}, route: {cluster: shop, retry_policy: {retry_on: 5xx}}}
      - {match: {prefix: /}, route: {cluster: rest, retry_policy: {retry_on: 5xx}}}`,
      UNSAFE.slice(1),
    ],
    [
      'hosts wherever they stand',
      `
static_resources:
  listeners:
    - filter_chains:
        - filters:
            - typed_config:
                route_config:
                  virtual_hosts: [{name: a, routes: [{match: {path: /t.v1.S/Ignored}, route: {retry_policy: {retry_on: 5xx}}}]}]
---
resources:
  - virtual_hosts: [{name: b, routes: [{match: {path: /t.v1.S/Optional}, route: {retry_policy: {retry_on: 5xx}}}]}]`,
      ['/t.v1.S/Ignored', '/t.v1.S/Optional'],
    ],
  ])('reads as Envoy does: %s', async (_, yaml, expected) => {
    expect(await methodsOf(yaml)).toEqual(expected);
  });

  it.each([
    ['no YAML', 'virtual_hosts: [', /envoy\.yaml: expected YAML: /],
    ['without routes', 'clusters: []', /envoy\.yaml: expected a virtual host with routes/],
    ['empty', '', /envoy\.yaml: expected a virtual host with routes/],
  ])('refuses a file that is %s', async (_, yaml, fault) => {
    const { code, faults } = await checkRoutes(yaml);
    expect(code).toBe(1);
    expect(faults).toEqual(expect.arrayContaining([expect.stringMatching(fault)]));
  });
});
