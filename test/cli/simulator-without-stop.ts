// A program that starts a simulator and does not stop it. What else keeps the process alive is its stdin, until that ends.
import { DebateSpaceSimulator } from '../../libs/debate-space-simulator/src/index.js';

const simulator = await DebateSpaceSimulator.start({
  keepProcessAlive: process.argv.includes('keepProcessAlive'),
});
if (process.argv.includes('latency')) {
  simulator.faults.add({ kind: 'latency', ms: 3_600_000 });
  void simulator.received
    .waitFor('token', { timeoutMs: 60_000 })
    .then(() => process.stdout.write('received\n'));
}
process.stdin.on('end', () => process.stdout.write('stdin has ended\n')).resume();
process.stdout.write(`${simulator.url}\n`);
