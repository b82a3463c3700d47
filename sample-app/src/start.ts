import { once } from 'node:events';
import { startSimulator } from './simulator.js';

/** Logins that everybody knows are for this machine only. */
const HOST = '127.0.0.1';
/** Enough for a list of erasures that meets the rate limit. */
const MEMBERS = 120;
/** As long as a service on another machine takes. */
const LATENCY_MS = 400;
/** Nest lists each module and route at every start. */
const LOG_LEVELS = ['warn', 'error', 'fatal'] as const;

/** The app with a simulator of the debate space, until Ctrl+C. */
async function start(): Promise<void> {
  await using simulator = await startSimulator(Number(process.env.SIMULATOR_PORT ?? 4010), MEMBERS);
  simulator.faults.add({ kind: 'latency', ms: LATENCY_MS });
  // @nestjs/config reads the environment when the module of the app is loaded.
  const { createApp } = await import('./create-app.js');
  const app = await createApp({ logger: [...LOG_LEVELS] });
  try {
    await app.listen(Number(process.env.PORT ?? 3000), HOST);
    console.log(`
The sample app:    ${await app.getUrl()}/
The debate space:  ${simulator.url}/  (a simulator, with simulated failures)
Log in as:         ada, ben, cleo or admin; the password of all is "demo".
Command line:      npx debate-space outbox stats --config sample-app/.env.demo
Stop with Ctrl+C.
`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  } finally {
    await app.close(); // before the simulator, which takes the last logouts
  }
}

try {
  await start();
} catch (error) {
  const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
  console.error(isTaken ? `${error.message}\nhint: set PORT or SIMULATOR_PORT to a free port.` : error);
  process.exit(1); // the other server may already listen
}
