'use strict';

/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testEnvironment: 'node',
  transform: { '\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } }] },
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  // Its line must be the last one.
  reporters: ['default', '<rootDir>/test/support/closing-line-reporter.js'],
  // Every worker brings servers and clients of its own; more of them would measure the machine, not the code.
  maxWorkers: 2,
  testTimeout: 30_000,
};
