/** A server in a process of its own that answers every call after a moment; its port is the argument. */
import { startScriptedServer } from './scripted-server';

const TAKES_MS = 5;

process.once('disconnect', () => process.exit(0));
void startScriptedServer({ port: Number(process.argv[2] ?? 0) }, (answer) =>
  setTimeout(() => answer(null, Buffer.from('done')), TAKES_MS),
).then(({ port }) => process.send?.(port));
