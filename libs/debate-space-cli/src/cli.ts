import { runCli } from './run-cli.js';

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (interruption.signal.aborted) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
    process.stderr.write('\nStopping …\n'); // what is under way comes to its end first
    interruption.abort();
  });
}
// Whoever reads may go away early, as `head` does: there is nobody to tell.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  interrupted: interruption.signal,
});
process.stdin.destroy(); // what is still to come there would keep the process alive
