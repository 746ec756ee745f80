#!/usr/bin/env node
import { checkProtoCommand } from './check-proto-command';
import { maintainCommand } from './maintain-command';
import { migrateCommand } from './migrate-command';
import { outboxCommand } from './outbox-command';
import { reconcileCommand } from './reconcile-command';
import { runCommand } from './run-command';
import { serviceConfigCommand } from './service-config-command';

void runCommand({
  commands: [migrateCommand, maintainCommand, outboxCommand, reconcileCommand, checkProtoCommand, serviceConfigCommand],
  args: process.argv.slice(2),
  environment: process.env,
  print: (line) => console.log(line),
  printError: (line) => console.error(line),
}).then((code) => {
  process.exitCode = code;
});
