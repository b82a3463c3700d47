import { createWriteStream } from 'node:fs';
import { Socket } from 'node:net';
import { runCli } from './run-cli.js';

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (interruption.signal.aborted) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
    process.stderr.write('\nEnding this command …\n'); // running work comes to its end first
    interruption.abort();
  });
}
// To a file, process.stdout drops what a full disk did not take of a piece, without an error.
const stdout = process.stdout instanceof Socket ? process.stdout : createWriteStream('', { fd: 1 });

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  stdin: process.stdin,
  stdout,
  stderr: process.stderr,
  interrupted: interruption.signal,
});
process.stdin.destroy(); // what is still to come there would keep the process alive
