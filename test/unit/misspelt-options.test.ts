import { credentials } from '@grpc/grpc-js';
import {
  createClientInterceptor,
  createIdempotency,
  createIntents,
  createPromiseClient,
  createRequestsService,
  createRetryBudget,
  openPostgresStore,
  runRetention,
} from '../../src/idempotency/index';
import { createPaymentsClient } from '../../src/payments/payments-client';
import { ShelfService } from '../support/foreign-service';

/** What a program in JavaScript may give. */
type Careless = (...given: unknown[]) => unknown;

const policies = { get: () => undefined, all: () => [] };
const store = { claim: () => Promise.reject(new Error('not called')) };
const principal = () => 'account-1';
const insecure = credentials.createInsecure();

/** The message of the TypeError that a call of a function must end with. */
async function faultOf(made: unknown, ...given: unknown[]): Promise<string> {
  const error: unknown = await new Promise((resolve) => resolve((made as Careless)(...given))).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(TypeError);
  return (error as TypeError).message;
}

const MADE = 'what loadPolicies or policiesFromPackageDefinition made';
const FROM_STORE = 'what openPostgresStore resolved with';
const A_PRINCIPAL = 'a function that names the account of the caller';

test.each<[unknown, string]>([
  [undefined, 'createIdempotency: expected { policies, store, principal }, got nothing'],
  [null, 'createIdempotency: expected { policies, store, principal }, got null'],
  [
    {},
    `createIdempotency: policies: expected ${MADE}, got nothing; store: expected ${FROM_STORE}, got nothing; ` +
      `principal: expected ${A_PRINCIPAL}, got nothing`,
  ],
  [
    { policies, store, principle: principal },
    `createIdempotency: principle: no such name; was principal meant?; principal: expected ${A_PRINCIPAL}, got nothing`,
  ],
  [{ policies, store: Promise.resolve(store), principal }, `got a promise: is an await missing?`],
  [{ policies: [], store, principal }, `policies: expected ${MADE}, got an array`],
  [{ policies, store, principal, onEvent: 'log' }, 'onEvent: expected a function, got a string'],
  [{ policies, store, principal, requestIdName: 7 }, 'requestIdName: expected a metadata name, got a number'],
  [{ policies, store, principal, mostAttempts: '5' }, 'mostAttempts: expected a whole number from 1 on, got a string'],
  [{ policies, store, principal, mostWaiting: 0 }, 'mostWaiting: expected a whole number from 1 on, got a number'],
  [{ policies, store, principal, log: 1 }, 'log: no such name; expected one of policies, store, principal, onEvent, '],
])('createIdempotency(%o) says what is at fault', async (given, expected) => {
  expect(await faultOf(createIdempotency, ...(given === undefined ? [] : [given]))).toContain(expected);
});

test('createIdempotency takes every option that there is', () => {
  const all = { onEvent: () => undefined, requestIdName: 'key', mostAttempts: 1, mostWaiting: 1, clientVersions: [] };
  expect(() => createIdempotency({ policies, store: store as never, principal, ...all })).not.toThrow();
});

test.each<[unknown, string]>([
  [undefined, 'client options: expected { policies }, got nothing'],
  ['127.0.0.1:50051', 'client options: expected { policies }, got a string'],
  [{}, 'client options: policies: expected a policy registry'],
  [{ policies, attempTimeoutMs: 5 }, 'client options: attempTimeoutMs: no such name; was attemptTimeoutMs meant?'],
  [{ policies, timeout: 5 }, 'timeout: no such name; was timeoutMs meant?'],
  [{ policies, credentials: insecure }, 'credentials: no such name; expected one of policies, requestIdName, '],
])('createClientInterceptor(%o) says what is at fault', async (given, expected) => {
  expect(await faultOf(createClientInterceptor, ...(given === undefined ? [] : [given]))).toContain(expected);
});

const NO_CREDENTIALS = 'credentials: expected ChannelCredentials, such as credentials.createInsecure(), got nothing';

test.each<[unknown[], string]>([
  [[ShelfService, '127.0.0.1:1'], 'client options: expected { credentials, policies }, got nothing'],
  [[ShelfService, '127.0.0.1:1', { policies }], NO_CREDENTIALS],
  [
    [ShelfService, { policies, credentials: insecure }],
    'address: expected a gRPC target, such as 127.0.0.1:50051, got an object',
  ],
  [
    [undefined, '127.0.0.1:1', { policies, credentials: insecure }],
    'service: expected a service definition, got nothing',
  ],
  [
    [ShelfService, '127.0.0.1:1', { policies, credential: insecure }],
    'credential: no such name; was credentials meant?',
  ],
  [[ShelfService, '127.0.0.1:1', { policies, credentials: insecure, interceptor: [] }], 'was interceptors meant?'],
  [
    [ShelfService, '127.0.0.1:1', { policies, credentials: insecure, interceptors: () => undefined }],
    'interceptors: expected an array of functions, got a function',
  ],
  [
    [ShelfService, '127.0.0.1:1', { policies, credentials: insecure, channelOptions: 'x' }],
    'channelOptions: expected an object, got a string',
  ],
])('createPromiseClient(…%#) says what is at fault', async (given, expected) => {
  expect(await faultOf(createPromiseClient, ...given)).toContain(expected);
});

test('a payments client without credentials is told so, and nothing of two copies of grpc-js', async () => {
  for (const given of [[], [{}]]) {
    const message = await faultOf(createPaymentsClient, '127.0.0.1:1', ...given);
    expect(message).toBe(NO_CREDENTIALS);
  }
});

test('a promise client takes every option that there is', () => {
  const limits = { timeoutMs: 5, attemptTimeoutMs: 5, maxAttempts: 1, methods: {} };
  const waits = { initialBackoffMs: 1, backoffMultiplier: 1, maxBackoffMs: 1, random: () => 0, keyLifetimeMs: 1 };
  const others = { requestIdName: 'key', waitForReady: false, retryBudget: undefined, onEvent: () => undefined };
  const channel = { credentials: insecure, channelOptions: {}, interceptors: [] };
  createPromiseClient(ShelfService, '127.0.0.1:1', { policies, ...limits, ...waits, ...others, ...channel }).close();
});

const sql = { $queryRawUnsafe: () => Promise.reject(new Error('not called')) };
const pool = { query: () => undefined, connect: () => undefined };
const prisma = { ...sql, $transaction: () => Promise.reject(new Error('not called')) };
const A_CLIENT = 'expected a Prisma client, or what has its $transaction and $queryRawUnsafe, got';

test.each<[unknown, string]>([
  [undefined, 'openPostgresStore: expected { business, records, policies }, got nothing'],
  [{ business: pool, records: pool, policies: [] }, `business: ${A_CLIENT} an object (Object); records: ${A_CLIENT}`],
  [
    { client: prisma },
    'openPostgresStore: client: no such name; expected one of business, records, policies, instance; ' +
      `business: ${A_CLIENT} nothing; records: ${A_CLIENT} nothing; policies: expected an array, such as policies.all(), got nothing`,
  ],
  [
    { business: prisma, records: prisma, policies },
    'policies: expected an array, such as policies.all(), got an object',
  ],
  [{ business: prisma, records: prisma, policies: [], instance: 7 }, 'instance: expected a text, got a number'],
])('openPostgresStore(%o) says what is at fault', async (given, expected) => {
  expect(await faultOf(openPostgresStore, ...(given === undefined ? [] : [given]))).toContain(expected);
});

test.each<[unknown, string]>([
  [undefined, 'runRetention: expected { client }, got nothing'],
  [{ maintenance: prisma }, `maintenance: no such name; expected one of client, onEvent, exportDay, `],
  [{ maintenance: prisma }, `client: ${A_CLIENT} nothing`],
  [prisma, `client: ${A_CLIENT} nothing`],
  [{ client: sql }, `client: ${A_CLIENT} an object`],
  [{ client: prisma, onEvent: 1 }, 'onEvent: expected a function'],
  [{ client: prisma, exportDay: 1 }, 'exportDay: expected a function'],
  [
    { client: prisma, signal: new AbortController() },
    'signal: expected an AbortSignal, got an object (AbortController)',
  ],
])('runRetention(%o) says what is at fault', async (given, expected) => {
  expect(await faultOf(runRetention, ...(given === undefined ? [] : [given]))).toContain(expected);
});

const intentsClient = { ...sql, $connect: () => Promise.resolve() };
const kept = { client: intentsClient, producer: 'shop/checkout' };

test.each<[unknown, string]>([
  [undefined, 'intents: expected { client, producer }, got nothing'],
  [{ ...kept, expireAfterMs: 5 }, 'intents: expireAfterMs: no such name; was expiresAfterMs meant?'],
  [{ ...kept, keepFinished: 5 }, 'intents: keepFinished: no such name; was keepFinishedMs meant?'],
  [{ ...kept, policies: 'all' }, 'policies: expected the policies of one or more methods'],
  [
    { client: intentsClient, producers: 'shop' },
    'intents: producers: no such name; was producer meant?; producer: expected',
  ],
])('createIntents(%o) says what is at fault', async (given, expected) => {
  expect(await faultOf(createIntents, ...(given === undefined ? [] : [given]))).toContain(expected);
});

test.each<[unknown, string]>([
  [null, 'retry budget: expected { target, maxTokens, tokensPerSuccess }, got null'],
  ['127.0.0.1:50051', 'retry budget: expected { target, maxTokens, tokensPerSuccess }, got a string'],
  [{ maxToken: 5 }, 'retry budget: maxToken: no such name; was maxTokens meant?'],
  [{ tokens: 5 }, 'retry budget: tokens: no such name; was tokensPerSuccess meant?'],
])('createRetryBudget(%o) says what is at fault', async (given, expected) => {
  expect(await faultOf(createRetryBudget, given)).toContain(expected);
});

const asked = { lookUpStatus: () => Promise.reject(new Error('not called')) };

test.each<[unknown, string]>([
  [undefined, 'createRequestsService: expected { policies, store }, got nothing'],
  [{ policies, store: asked }, 'policies: expected an array, such as policies.all(), got an object'],
  [
    { policies: [], store: Promise.resolve(asked) },
    `store: expected ${FROM_STORE}, got a promise: is an await missing?`,
  ],
  [{ policies: [], stores: asked }, 'createRequestsService: stores: no such name; was store meant?; store: expected'],
])('createRequestsService(%o) says what is at fault', async (given, expected) => {
  expect(await faultOf(createRequestsService, ...(given === undefined ? [] : [given]))).toContain(expected);
});

test.each<[unknown, string]>([
  [null, 'createCompleter: expected { everyMs, batch, mostAtOnce, graceMs }, got null'],
  [{ every: 5 }, 'createCompleter: every: no such name; was everyMs meant?'],
  [
    { batchSize: 5, graceMs: 0 },
    'createCompleter: batchSize: no such name; expected one of everyMs, batch, mostAtOnce,',
  ],
  [{ batchSize: 5, graceMs: 0 }, 'graceMs: expected a positive whole number, got 0'],
])('createCompleter(%o) says what is at fault', async (given, expected) => {
  const { createCompleter } = createIdempotency({ policies, store: store as never, principal });
  expect(await faultOf(createCompleter, given)).toContain(expected);
});
