#!/usr/bin/env node
import '../require-node';
import { COMMANDS } from './commands';
import { runCommand } from './run-command';

void runCommand({
  commands: COMMANDS,
  args: process.argv.slice(2),
  environment: process.env,
  print: (line) => console.log(line),
  printError: (line) => console.error(line),
}).then((code) => {
  process.exitCode = code;
});
