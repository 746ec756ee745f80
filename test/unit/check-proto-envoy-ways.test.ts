import { check, file, methodsIn, set, UNSAFE } from '../support/check-proto';

const methodsOf = async (yaml: string) => methodsIn((await check('--envoy', file('envoy.yaml', yaml), set)).faults);

describe('what Envoy would send twice by way of', () => {
  it.each<[string, string, (string | undefined)[]]>([
    [
      'a prefix that is rewritten',
      `
virtual_hosts:
  - name: edge
    routes:
      - {match: {prefix: /api/}, route: {cluster: shop, prefix_rewrite: /, retry_policy: {retry_on: 5xx}}}`,
      UNSAFE,
    ],
    [
      'a rewritten prefix does not hide the routes behind it',
      `
virtual_hosts:
  - name: edge
    routes:
      - {match: {prefix: /api/}, route: {cluster: shop, prefix_rewrite: /}}
      - {match: {path: /t.v1.S/Ignored}, route: {cluster: shop, retry_policy: {retry_on: 5xx}}}`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'a whole path that is rewritten',
      `
virtual_hosts:
  - name: edge
    routes:
      - {match: {path: /pay}, route: {cluster: shop, prefix_rewrite: /t.v1.S/Ignored, retry_policy: {retry_on: 5xx}}}`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'a path that a pattern rewrites',
      `
virtual_hosts:
  - name: edge
    routes:
      - match: {safe_regex: {regex: "/api/v1/.*"}}
        route: {cluster: shop, regex_rewrite: {pattern: {regex: "^/api/v1"}, substitution: ""}, retry_policy: {retry_on: 5xx}}`,
      UNSAFE,
    ],
    [
      'retries asked for by a header that a route adds',
      `
virtual_hosts:
  - name: shop
    routes:
      - match: {path: /t.v1.S/Ignored}
        route: {cluster: shop}
        request_headers_to_add: [{header: {key: x-envoy-retry-on, value: "5xx,connect-failure"}}]`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'by a header that a virtual host adds',
      `
virtual_hosts:
  - name: shop
    request_headers_to_add: [{header: {key: X-Envoy-Retry-Grpc-On, value: unavailable}}]
    routes: [{match: {path: /t.v1.S/Ignored}, route: {cluster: shop}}]`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'by a header that a weighted cluster adds',
      `
virtual_hosts:
  - name: shop
    routes:
      - match: {path: /t.v1.S/Ignored}
        route:
          weighted_clusters:
            clusters:
              - {name: a, weight: 1}
              - {name: b, weight: 1, request_headers_to_add: [{header: {key: x-envoy-retry-on, value: 5xx}}]}`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'by a header that the route configuration adds',
      `
route_config:
  request_headers_to_add: [{header: {key: x-envoy-retry-on, value: 5xx}}]
  virtual_hosts:
    - {name: shop, routes: [{match: {path: /t.v1.S/Ignored}, route: {cluster: shop}}]}`,
      ['/t.v1.S/Ignored'],
    ],
    [
      'a harmless header',
      `
virtual_hosts:
  - name: shop
    request_headers_to_add: [{header: {key: x-envoy-retry-on, value: reset-before-request}}, {header: {key: x-a, value: 5xx}}]
    routes: [{match: {path: /t.v1.S/Ignored}, route: {cluster: shop}}]`,
      [],
    ],
    [
      'a virtual host with a matcher',
      `
virtual_hosts:
  - name: plain
    domains: [a]
    routes: [{match: {prefix: /}, route: {cluster: shop}}]
  - name: tree
    domains: [b]
    retry_policy: {retry_on: 5xx}
    matcher:
      matcher_tree:
        input: {name: path}
        exact_match_map:
          map:
            /t.v1.S/Ignored:
              action:
                name: route
                typed_config: {"@type": type.googleapis.com/envoy.config.route.v3.Route, match: {path: /t.v1.S/Ignored}, route: {cluster: shop}}`,
      ['/t.v1.S/Ignored'],
    ],
  ])('%s', async (_, yaml, expected) => {
    expect(await methodsOf(yaml)).toEqual(expected);
  });
});
