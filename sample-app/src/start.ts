import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { ConfigService } from '@nestjs/config';
import { CommandLineSettings } from './command-line-settings.js';
import { createApp } from './create-app.js';
import { DEMO_PASSWORD, DEMO_USERS } from './login/demo-users.js';
import { listening, portFrom } from './port.js';
import { runProgram } from './run-program.js';
import { startSimulatedService } from './simulated-service.js';
import { storageFrom } from './storage.js';

// Logins that everybody knows are for this machine alone.
const HOST = '127.0.0.1';

/** Enough for several pages of the user list, and for a bulk erasure that can be watched. */
const MEMBERS = 120;
/** A service on another machine takes its time. What it does, it does immediately; its answer comes later. */
const LATENCY_MS = 400;

/** The app with a simulator of the debate space beside it, until Ctrl+C. */
async function start(): Promise<void> {
  const port = portFrom('PORT', 3000);
  const simulatorPort = portFrom('SIMULATOR_PORT', 4010);
  console.log('Starting the simulator of the debate space …');
  await using simulator = await listening('SIMULATOR_PORT', simulatorPort, () =>
    startSimulatedService(simulatorPort, MEMBERS),
  );
  simulator.faults.add({ kind: 'latency', ms: LATENCY_MS });
  console.log('Starting the sample app …');
  process.env.SESSION_SECRET ??= randomBytes(32).toString('hex'); // the demo forgets its sessions anyway
  const app = await createApp({ forceCloseConnections: true });
  try {
    await listening('PORT', port, () => app.listen(port, HOST));
    const { setting } = storageFrom(app.get(ConfigService));
    await using settings = await CommandLineSettings.write(setting);
    console.log(`
The sample app:    ${await app.getUrl()}/
The debate space:  ${simulator.url}/  (a simulator; nothing is kept; simulated failures)
Log in as:         ${DEMO_USERS.map(({ uid }) => uid).join(', ')}; the password of all is "${DEMO_PASSWORD}".
Command line:      ${
      setting === 'memory'
        ? 'only with another DEBATE_SPACE_STORAGE: no other process sees this memory.'
        : `npx debate-space outbox stats --config ${settings.path}`
    }
Stop with Ctrl+C.
`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    console.log('Stopping …');
  } finally {
    // Before the simulator, which still takes the logouts that are under way.
    await app.close();
  }
}

await runProgram(start);
