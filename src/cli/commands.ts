import { checkProtoCommand } from './check-proto-command';
import type { Command } from './command';
import { expireCommand } from './expire-command';
import { inspectCommand } from './inspect-command';
import { maintainCommand } from './maintain-command';
import { migrateCommand } from './migrate-command';
import { outboxCommand } from './outbox-command';
import { reconcileCommand } from './reconcile-command';
import { releaseCommand } from './release-command';
import { serviceConfigCommand } from './service-config-command';

/** All commands, in the order of the help: the database, single requests, what goes outside, configuration. */
export const COMMANDS: readonly Command[] = [
  ...[migrateCommand, maintainCommand],
  ...[inspectCommand, releaseCommand, expireCommand],
  ...[outboxCommand, reconcileCommand],
  ...[checkProtoCommand, serviceConfigCommand],
];
