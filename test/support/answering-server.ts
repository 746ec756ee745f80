/**
 * A server in a process of its own that answers every call after a moment. Its arguments are its port and how long it takes
 * in milliseconds; it listens once it is told to.
 */
import { startScriptedServer } from './scripted-server';

const [port, takesMs] = process.argv.slice(2).map(Number);

process.once('disconnect', () => process.exit(0));
process.once('message', () => {
  void startScriptedServer({ port: port ?? 0 }, (answer) =>
    setTimeout(() => answer(null, Buffer.from('done')), takesMs),
  ).then(({ port: listensOn }) => process.send?.(listensOn));
});
process.send?.('ready');
